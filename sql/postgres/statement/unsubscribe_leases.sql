-- The leases of a consumer that is gone. Only whoever runs it writes them anew.
-- ?1 consumer type  ?2 consumer name
DELETE FROM ${partition_ownership_table}
 WHERE consumer_type = ?1::text AND consumer_name = ?2::text
