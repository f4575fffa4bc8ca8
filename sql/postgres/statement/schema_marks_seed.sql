-- A mark that is there stays.
INSERT INTO ${high_water_mark_store_table}
       (topic_name, high_water_mark, topic_start)
VALUES ('event-store', 0, 0), ('event-capture', 0, 0),
       ('read-model-topics', 0, 0)
    ON CONFLICT (topic_name) DO NOTHING
