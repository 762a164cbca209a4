-- Every event of a run with its step, and how that was decided (step_source):
--   own     the event itself carries the number, and among steps of that number the one that
--           holds it is looked for as below;
--   launch  a GPU event takes the step that holds its launch, found by correlation in its file;
--   inside  a step of its node and rank (and clock) holds it whole: the one that started last
--           before it, or else the one that reaches furthest;
--   null    no step holds it.
--
--   steps    |-----3-----|      |-----4-----|
--   events     |---| inside   |---| null  |--| inside
--
-- of_mode: only steps of this mode hold events; null for all (where two modes see the same loop, as
-- ProfilerStep beside TRAIN, an event is held by that which started last).
-- Columns as in the view events, with step as decided here, then step_mode and step_start_ns (mode
-- and start of the step that holds it; null where none does) and step_source.
-- Example: SELECT step, SUM(dur_ns) FROM step_events('job') GROUP BY step;
CREATE OR REPLACE MACRO step_events(run_name, of_mode := NULL) AS TABLE
WITH e AS (
    SELECT
        *, COALESCE(rank, -1) AS rank_key, COALESCE(step, _any_step()) AS number,
        CASE WHEN clock = 'trace' THEN ingest_id ELSE -1 END AS zero,
        regexp_matches(category, '(^|_)(runtime|driver)$') AS is_launch
    FROM events
    WHERE run = run_name
),

-- Of steps that start at once the shortest, and of all that have started the one that ends last:
-- among all, and among those of each number.
s AS (
    SELECT
        *,
        MAX(longest) OVER (PARTITION BY node, rank_key, zero, number ORDER BY start_ns) AS furthest
    FROM (
        SELECT
            node, COALESCE(rank, -1) AS rank_key, COALESCE(ingest_id, -1) AS zero,
            number, start_ns,
            MIN({'end_ns': end_ns, 'step': step, 'mode': mode, 'start_ns': start_ns}) AS inner_step,
            MAX({'end_ns': end_ns, 'step': step, 'mode': mode, 'start_ns': start_ns}) AS longest
        FROM (SELECT *, UNNEST([_any_step(), step]) AS number FROM steps WHERE run = run_name)
        WHERE complete AND (of_mode IS NULL OR mode = of_mode)
        GROUP BY node, rank_key, zero, number, start_ns
    )
),

-- What counts for the place of an event among the steps: itself, or its launch.
launches AS (
    SELECT
        ingest_id, correlation, MIN(ts_ns) AS launch_ns, ARG_MIN(end_ns, ts_ns) AS launch_end_ns
    FROM e
    WHERE is_launch AND correlation <> 0
    GROUP BY ingest_id, correlation
),

placed AS (
    SELECT
        e.*, l.launch_ns IS NOT NULL AS is_launched,
        COALESCE(l.launch_ns, e.ts_ns) AS place_ns,
        CASE
            WHEN l.launch_ns IS NOT NULL THEN COALESCE(l.launch_end_ns, l.launch_ns)
            ELSE COALESCE(e.end_ns, e.ts_ns)
        END AS place_end_ns
    FROM e
    LEFT JOIN launches AS l
        ON l.ingest_id = e.ingest_id AND l.correlation = e.correlation AND NOT e.is_launch
),

held AS (
    SELECT
        p.*,
        CASE
            WHEN p.place_end_ns <= s.inner_step.end_ns THEN s.inner_step
            WHEN p.place_end_ns <= s.furthest.end_ns THEN s.furthest
        END AS holder
    FROM placed AS p
    ASOF LEFT JOIN s
        ON s.node = p.node AND s.rank_key = p.rank_key AND s.zero = p.zero
        AND s.number = p.number AND s.start_ns <= p.place_ns
)

SELECT
    * EXCLUDE (rank_key, number, zero, is_launch, is_launched, place_ns, place_end_ns, holder)
    REPLACE (COALESCE(step, holder.step) AS step),
    holder.mode AS step_mode, holder.start_ns AS step_start_ns,
    CASE
        WHEN step IS NOT NULL THEN 'own'
        WHEN holder IS NOT NULL AND is_launched THEN 'launch'
        WHEN holder IS NOT NULL THEN 'inside'
    END AS step_source
FROM held;

COMMENT ON MACRO TABLE step_events IS 'Every event of a run with its step and how that was decided: own, launch, inside or null.';
