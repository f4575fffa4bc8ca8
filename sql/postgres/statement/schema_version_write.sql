-- ?1 version  ?2 now
INSERT INTO ${schema_version_table} (id, version, installed_at)
VALUES (1, ?1::bigint, ?2::timestamptz)
    ON CONFLICT (id) DO UPDATE
   SET version = excluded.version, upgraded_at = excluded.installed_at
