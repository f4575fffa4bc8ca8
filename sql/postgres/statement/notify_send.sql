-- Tells the hosts that wait, once the transaction has committed. A server whose
-- queue of notifications is full refuses to commit: well before that nothing is
-- sent, and hosts find out by polling.
-- not for: sqlite mysql
SELECT pg_notify('moontide_' || '${high_water_mark_store_table}'::regclass::oid,
                 '')
 WHERE pg_notification_queue_usage() < 0.5
