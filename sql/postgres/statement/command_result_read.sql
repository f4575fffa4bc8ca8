-- What became of a command.
-- ?1 command id
SELECT aggregate_type, aggregate_id, name, outcome
  FROM ${command_results_table}
 WHERE id = ?1::uuid
