#include "db/sqlite.h"

#include "base/memory.h"

/* moontide_head(table, column, rowid, bytes): so many bytes of a value at most,
 * cut where a character begins, or NULL when it is none. */
static void head(sqlite3_context *context, int count, sqlite3_value **values)
{
    sqlite3_blob *blob = NULL;
    int size = sqlite3_value_int(values[3]);
    char *bytes;
    int code = sqlite3_blob_open(sqlite3_context_db_handle(context), "main",
                                 (const char *)sqlite3_value_text(values[0]),
                                 (const char *)sqlite3_value_text(values[1]),
                                 sqlite3_value_int64(values[2]), 0, &blob);

    (void)count;
    if (code == SQLITE_ERROR) { /* such as a NULL */
        sqlite3_result_null(context);
        (void)sqlite3_blob_close(blob);
        return;
    }
    if (code == SQLITE_OK && sqlite3_blob_bytes(blob) < size)
        size = sqlite3_blob_bytes(blob);
    bytes = mem_alloc((size_t)size + 1);
    if (code == SQLITE_OK)
        code = sqlite3_blob_read(blob, bytes, size, 0);
    if (code == SQLITE_OK && size < sqlite3_blob_bytes(blob))
        while (size > 0 && ((unsigned char)bytes[size - 1] & 0x80) != 0)
            size--;
    if (code == SQLITE_OK)
        sqlite3_result_text(context, bytes, size, SQLITE_TRANSIENT);
    else
        sqlite3_result_error_code(context, code);
    mem_free(bytes);
    (void)sqlite3_blob_close(blob);
}

int sqlite_head_register(sqlite3 *handle)
{
    return sqlite3_create_function_v2(handle, SQLITE_HEAD, 4, SQLITE_UTF8, NULL,
                                      head, NULL, NULL, NULL);
}
