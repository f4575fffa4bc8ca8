-- The last position handed out to an event, read as mark_read.sql says.
SELECT coalesce(
           pg_sequence_last_value('${event_store_global_position_table}'),
           (SELECT s.last_value - 1
              FROM ${event_store_global_position_table} AS s
             WHERE NOT s.is_called
               AND pg_sequence_last_value(
                       '${event_store_global_position_table}') IS NULL),
           pg_sequence_last_value('${event_store_global_position_table}'))
