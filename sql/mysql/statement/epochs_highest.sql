-- The newest rebuild that has made a read model: rows outlive a consumer that
-- was unsubscribed, and a new one must not count from below them.
-- ?1 projection
SELECT MAX(epoch) FROM ${read_model_epochs_table} WHERE projection = ?1
