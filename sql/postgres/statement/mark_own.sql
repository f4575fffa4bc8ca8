-- Gives the transaction its id. It must have run to its end before mark_pend
-- begins: that statement's snapshot is judged by this id.
-- Nobody waits until the mark is on the disk: whatever is committed by what was
-- read below it lies behind it in the write-ahead log, so that a crash that
-- takes the mark back takes that back, too.
-- not for: sqlite mysql
SELECT pg_current_xact_id()::text::bigint,
       set_config('synchronous_commit', 'off', true)
