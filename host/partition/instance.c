#include "partition/instance.h"

#include "base/clock.h"
#include "base/memory.h"

#include <unistd.h>

/* Of the column; a machine's name is shorter. */
#define HOST_NAME_MAX_LEN 255

void instance_new_id(struct uuid_source *ids, char id[UUID_TEXT_LEN + 1])
{
    struct uuid uuid = uuid_v7(ids, clock_now(NULL));

    uuid_format(&uuid, id);
}

enum status instance_write(struct db *db, const struct catalog *catalog,
                           const char *id, int64_t lives_us, struct diag *diag)
{
    char name[HOST_NAME_MAX_LEN + 1] = "";
    char clean[HOST_NAME_MAX_LEN + 1];
    bool named = gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0';

    text_clean(text_of(name), clean, sizeof(clean));
    const struct db_value params[] = {db_string(id),
                                      named ? db_string(clean) : db_null(),
                                      db_integer(lives_us)};

    return db_queue(db, catalog_sql(catalog, SQL_INSTANCE_WRITE), params, 3,
                    DB_ANY_ROWS, -1, diag);
}

static struct text *texts_of(const char *const *ids, size_t count)
{
    struct text *texts = mem_grow(NULL, count + 1, sizeof(*texts));

    for (size_t i = 0; i < count; i++)
        texts[i] = text_of(ids[i]);
    return texts;
}

enum status instance_refresh(struct db *db, const struct catalog *catalog,
                             const char *const *ids, size_t count,
                             int64_t lives_us, int64_t *refreshed,
                             struct diag *diag)
{
    struct text *texts = texts_of(ids, count);
    const struct db_value params[] = {db_texts(texts, count),
                                      db_integer(lives_us)};
    enum status status = db_begin(db, diag);

    *refreshed = 0;
    if (status == STATUS_OK)
        status = db_execute(db, catalog_sql(catalog, SQL_INSTANCE_REFRESH),
                            params, 2, refreshed, diag);
    if (status == STATUS_OK)
        status = db_commit(db, NULL, diag);
    db_rollback(db);
    mem_free(texts);
    return status;
}

enum status instance_end(struct db *db, const struct catalog *catalog,
                         const char *const *ids, size_t count,
                         struct diag *diag)
{
    static const enum sql_statement statements[] = {
        SQL_INSTANCE_RELEASE, SQL_MEMBER_LEAVE, SQL_INSTANCE_DELETE};
    struct text *texts = texts_of(ids, count);
    const struct db_value param = db_texts(texts, count);
    enum status status = db_begin(db, diag);

    for (size_t i = 0; status == STATUS_OK && i < 3; i++)
        status = db_queue(db, catalog_sql(catalog, statements[i]), &param, 1,
                          DB_ANY_ROWS, -1, diag);
    if (status == STATUS_OK)
        status = db_commit(db, NULL, diag);
    db_rollback(db);
    mem_free(texts);
    return status;
}
