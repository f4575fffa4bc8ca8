#include "db/shape.h"

#include "db/db_core.h"

#include <strings.h>

enum status db_create_table(struct db *db, const struct db_shape *shape,
                            struct diag *diag)
{
    enum status status;

    diag = db_core_diag(db, diag);
    status = db_core_prepare(db, diag);
    if (status != STATUS_OK)
        return status;
    queue_skip(&db->queue);
    status = db->driver->create_table(db->session, shape, diag);
    return db_core_settle(db, status, diag);
}

enum status db_describe_table(struct db *db, const char *name,
                              struct arena *arena, struct db_shape *shape,
                              bool *exists, struct diag *diag)
{
    enum status status;

    *exists = false;
    diag = db_core_diag(db, diag);
    status = db_core_prepare(db, diag);
    if (status != STATUS_OK)
        return status;
    status = db->driver->describe_table(db->session, name, arena, shape, exists,
                                        diag);
    return db_core_settle(db, status, diag);
}

void db_print_table(const struct db *db, const struct db_shape *shape,
                    struct buffer *out)
{
    db->driver->print_table(shape, out);
}

void db_print_name(const struct db *db, const char *name, struct buffer *out)
{
    db->driver->print_name(name, out);
}

const char *db_column_fits(const struct db *db,
                           const struct db_shape_column *wanted,
                           const struct db_shape_column *actual)
{
    return db->driver->column_fits(wanted, actual);
}

const char *db_kept_prefix(const char *name)
{
    static const char *const kept[] = {"sqlite_", "pg_"};

    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        if (strncasecmp(name, kept[i], strlen(kept[i])) == 0)
            return kept[i];
    return NULL;
}
