-- Every view, column and macro with its comment: name, column (null for the object itself),
-- type, comment. Names with a leading underscore are private.
SELECT name, "column", type, comment
FROM (
    SELECT view_name AS name, NULL AS "column", 'view' AS type, comment, 0 AS place
    FROM duckdb_views()
    WHERE NOT internal
    UNION ALL
    SELECT c.table_name, c.column_name, c.data_type, c.comment, c.column_index
    FROM duckdb_columns() AS c
    INNER JOIN duckdb_views() AS v ON v.view_name = c.table_name AND NOT v.internal
    UNION ALL
    SELECT
        concat(function_name, '(', array_to_string(parameters, ', '), ')'), NULL,
        CASE function_type WHEN 'table_macro' THEN 'table macro' ELSE 'macro' END, comment, 0
    FROM duckdb_functions()
    WHERE function_type IN ('macro', 'table_macro') AND NOT internal
)
WHERE NOT starts_with(name, '_')
ORDER BY name, place
