-- How many samples of a system frame lie in each range of values, by type of metric and node. A
-- range includes both ends; of several ranges the first that holds a value counts it.
-- system: a frame as PandasFrame gives it; $resources: words in the type of a metric; $ranges:
-- lists of two numbers.
-- Columns: type, nodeID, place (of the range, from 0), samples.
WITH placed AS (
    SELECT
        type, "nodeID",
        list_position(
            list_transform($ranges, lambda bounds: value BETWEEN bounds[1] AND bounds[2]), TRUE
        ) - 1 AS place
    FROM system
    WHERE list_bool_or(list_transform($resources, lambda word: contains(type, word)))
)

SELECT type, "nodeID", place, COUNT(*) AS samples
FROM placed
WHERE place >= 0
GROUP BY type, "nodeID", place
ORDER BY type, "nodeID", place
