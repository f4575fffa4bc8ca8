#include "topic/notify.h"

static bool can_notify(const struct db *db)
{
    return (db_abilities(db) & DB_CAN_NOTIFY) != 0;
}

struct text notify_channel(const struct db *db, const struct catalog *catalog)
{
    if (!can_notify(db))
        return TEXT_LITERAL("");
    return catalog_sql(catalog, SQL_NOTIFY_CHANNEL)->text;
}

enum status notify_send(struct db *db, const struct catalog *catalog,
                        struct diag *diag)
{
    if (!can_notify(db))
        return STATUS_OK;
    return db_queue(db, catalog_sql(catalog, SQL_NOTIFY_SEND), NULL, 0,
                    DB_ANY_ROWS, 0, diag);
}
