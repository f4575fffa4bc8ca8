-- Moves the sequence of positions past all that is stored and past its mark,
-- where it is behind them because it was made anew.
-- not for: sqlite mysql
-- Gives what it moved to, or no row.
SELECT setval('${read_model_capture_positions_table}', highest.position)
  FROM (SELECT greatest(
                   (SELECT max(high_water_mark)
                      FROM ${high_water_mark_store_table}
                     WHERE topic_name = 'read-model-topics'),
                   (SELECT max(last.topic_position)
                      FROM ${read_model_topics_table} AS t
                     CROSS JOIN LATERAL (
                           SELECT max(r.topic_position) AS topic_position
                             FROM ${read_model_capture_records_table} AS r
                            WHERE r.topic = t.topic) AS last))) AS highest
       (position)
 WHERE highest.position >
       coalesce(pg_sequence_last_value(
                    '${read_model_capture_positions_table}'), 0)
