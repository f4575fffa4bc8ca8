-- Sets the sequences of positions back to CACHE 1, those that are not. A
-- session that drew under the wider cache still holds positions back, so the
-- moment is noted where every later host finds it: in the sequence's comment.
-- ALTER SEQUENCE waits for transactions that hold a position.
-- not for: sqlite mysql
DO $repair$
DECLARE
    seq regclass;
BEGIN
    FOR seq IN
        SELECT seqrelid
          FROM pg_catalog.pg_sequence
         WHERE seqcache <> 1
           AND seqrelid IN (
                   '${event_store_global_position_table}'::regclass,
                   '${event_capture_global_position_table}'::regclass,
                   '${read_model_capture_positions_table}'::regclass)
    LOOP
        EXECUTE format('ALTER SEQUENCE %s CACHE 1', seq);
        EXECUTE format('COMMENT ON SEQUENCE %s IS %L', seq,
                       'moontide: cache restored at ' || clock_timestamp());
    END LOOP;
END
$repair$
