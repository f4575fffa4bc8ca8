-- ?1 version  ?2 now
INSERT INTO ${schema_version_table} (id, version, installed_at)
VALUES (1, ?1, ?2)
    ON DUPLICATE KEY UPDATE
       version = VALUES(version), upgraded_at = VALUES(installed_at)
