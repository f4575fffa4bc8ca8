-- Gives the transaction its id. It must have run to its end before mark_pend
-- begins: that statement's snapshot is judged by this id.
-- not for: sqlite mysql
SELECT pg_current_xact_id()::text::bigint
