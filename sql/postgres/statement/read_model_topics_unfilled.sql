-- Topics that lack read models from before they were switched on.
SELECT topic
  FROM ${read_model_topics_table}
 WHERE filled_at IS NULL
   AND switched_off_at IS NULL
 ORDER BY topic
