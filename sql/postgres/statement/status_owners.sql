-- Who holds which partition of each consumer, and whether that instance lives.
SELECT o.consumer_type, o.consumer_name, o.partition_no, o.instance_id,
       i.host_name, coalesce(i.expires_at > clock_timestamp(), false)
  FROM ${partition_ownership_table} AS o
  LEFT JOIN ${partition_instances_table} AS i
    ON i.instance_id = o.instance_id
 WHERE o.instance_id IS NOT NULL
 ORDER BY o.consumer_type, o.consumer_name, o.instance_id, o.partition_no
