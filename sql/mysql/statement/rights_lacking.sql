-- The first right that the user lacks: its verb, the table, the user.
-- ?1 what is wanted, a list of objects {name, verb}
-- not for: sqlite
SELECT want.verb, want.name, CURRENT_USER()
  FROM JSON_TABLE(?1, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           name VARCHAR(64) CHARACTER SET utf8mb4
               COLLATE utf8mb4_general_ci PATH '$.name',
           verb VARCHAR(8) CHARACTER SET utf8mb4
               COLLATE utf8mb4_general_ci PATH '$.verb')) AS want
  JOIN (
       SELECT CONVERT(table_name USING utf8mb4)
                  COLLATE utf8mb4_general_ci AS name,
              CONVERT(GROUP_CONCAT(DISTINCT privileges) USING utf8mb4)
                  COLLATE utf8mb4_general_ci AS verbs
         FROM information_schema.columns
        WHERE table_schema = DATABASE()
        GROUP BY table_name) AS held
    ON held.name = want.name
 WHERE want.verb <> 'DELETE' -- which is told by trying
   AND FIND_IN_SET(want.verb, held.verbs) = 0
 ORDER BY want.place
 LIMIT 1
