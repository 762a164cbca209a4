-- What a phase letter of the Trace Event Format means, and how the arguments of a pair merge.

-- kind of an event row by its phase letter.
CREATE OR REPLACE TEMP MACRO event_kind(ph) AS CASE ph
    WHEN 'X' THEN 'slice' WHEN 'B' THEN 'slice'
    WHEN 'i' THEN 'instant' WHEN 'I' THEN 'instant' WHEN 'R' THEN 'instant'
    WHEN 'b' THEN 'async' WHEN 'S' THEN 'async'
    WHEN 'n' THEN 'async_instant' WHEN 'T' THEN 'async_instant' WHEN 'p' THEN 'async_instant'
    WHEN 's' THEN 'flow_start' WHEN 't' THEN 'flow_step' WHEN 'f' THEN 'flow_end'
    WHEN 'f>' THEN 'flow_end_next'
    WHEN 'N' THEN 'object' WHEN 'O' THEN 'object' WHEN 'D' THEN 'object'
    WHEN 'c' THEN 'mark'
    ELSE 'other'
END;

-- Arguments of a begin and its end as one JSON object; where both have a key the end wins.
CREATE OR REPLACE TEMP MACRO merge_args(begin_args, end_args) AS CASE
    WHEN end_args IS NULL OR regexp_full_match(end_args, '\s*\{\s*\}\s*') THEN begin_args
    WHEN begin_args IS NULL OR regexp_full_match(begin_args, '\s*\{\s*\}\s*') THEN end_args
    WHEN NOT list_has_any(json_keys(begin_args), json_keys(end_args))
        THEN concat(regexp_replace(begin_args, '\s*\}\s*$', ''), ', ',
            regexp_replace(end_args, '^\s*\{\s*', ''))
    ELSE concat('{', array_to_string(
        list_concat(
            list_transform(
                list_filter(map_entries(from_json(begin_args, '"MAP(VARCHAR, JSON)"')),
                    lambda entry: NOT list_contains(json_keys(end_args), entry.key)),
                lambda entry: concat(to_json(entry.key), ': ', entry.value)
            ),
            [regexp_replace(end_args, '^\s*\{\s*', '')]
        ), ', '))
END;
