-- How far any consumer has come in the event store beyond the mark, where none
-- can be.
SELECT max(position) FROM ${consumer_checkpoints_table}
 WHERE source_name = 'event-store'
   AND position > (SELECT high_water_mark FROM ${high_water_mark_store_table}
                    WHERE topic_name = 'event-store')
