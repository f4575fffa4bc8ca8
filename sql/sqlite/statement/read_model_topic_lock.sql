-- Keeps everybody from applying for a projection, which the writer's lock that
-- the transaction holds does already.
-- ?1 projection
SELECT 1 WHERE ?1 IS NULL
