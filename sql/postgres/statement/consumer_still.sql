-- Whether a consumer still runs, in this epoch: asked by who holds some of its
-- checkpoints, which whoever changes that has to have held, too.
-- not for: sqlite mysql
-- ?1 consumer id  ?2 epoch
SELECT 1
  FROM ${consumers_table}
 WHERE id = ?1::text::uuid AND state IS NULL
   AND coalesce(epoch, 0) = ?2::bigint
