/* Rules of the configuration: precedence, kinds, ranges, names of keys. */
#include "run/settings.h"

#include "base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const variables[] = {
    "DATABASE_URL",        "MOONTIDE_DATABASE",
    "MOONTIDE_BATCH",      "MOONTIDE_LOG_LEVEL",
    "MOONTIDE_JIT",        "MOONTIDE_POLL_MIN_INTERVAL",
    "MOONTIDE_PARTITIONS", NULL,
};

/* Every test runs in a folder of its own, without settings around it. */
struct folder {
    char path[64];
    char *before;
};

static int enter_folder(void **state)
{
    struct folder *folder = calloc(1, sizeof(*folder));

    for (size_t i = 0; variables[i] != NULL; i++)
        unsetenv(variables[i]);
    strcpy(folder->path, "settings-test-XXXXXX");
    folder->before = getcwd(NULL, 0);
    assert_non_null(mkdtemp(folder->path));
    assert_int_equal(chdir(folder->path), 0);
    *state = folder;
    return 0;
}

static int leave_folder(void **state)
{
    struct folder *folder = *state;

    unlink("moontide.conf.lua");
    unlink("app/other.lua");
    rmdir("app");
    assert_int_equal(chdir(folder->before), 0);
    assert_int_equal(rmdir(folder->path), 0);
    free(folder->before);
    free(folder);
    return 0;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) != EOF);
    assert_int_equal(fclose(file), 0);
}

static void load(struct settings *settings)
{
    const struct settings_source source = {.config_path = NULL};
    struct diag diag = {.message = ""};

    if (settings_load(&source, settings, &diag) != STATUS_OK)
        fail_msg("%s", diag.message);
}

/* Loads `content` and expects CONFIG with every word in the message. */
static void refuse(const char *content, const char *word, const char *other)
{
    const struct settings_source source = {.config_path = NULL};
    struct settings settings;
    struct diag diag = {.message = ""};

    write_file("moontide.conf.lua", content);
    if (settings_load(&source, &settings, &diag) == STATUS_OK) {
        settings_free(&settings);
        fail_msg("accepted: %s", content);
    }
    assert_int_equal(diag.status, STATUS_CONFIG);
    if (strstr(diag.message, word) == NULL ||
        strstr(diag.message, other) == NULL)
        fail_msg("'%s' and '%s' are not in: %s", word, other, diag.message);
}

static void a_missing_default_file_means_defaults(void **state)
{
    struct settings settings;

    (void)state;
    load(&settings);
    assert_null(settings.config_path);
    assert_string_equal(settings.app_dir, ".");
    assert_string_equal(settings.scripts, "handlers");
    assert_int_equal(settings.partitions, 16);
    assert_int_equal(settings.workers, 1);
    assert_int_equal(settings.batch, 5000);
    assert_int_equal(settings.poll_min_us, 5000);
    assert_int_equal(settings.poll_max_us, 500000);
    assert_int_equal(settings.limit_time_us, 5 * CLOCK_SECOND);
    assert_int_equal(settings.limit_memory, 256 << 20);
    assert_int_equal(settings.limit_payload, 8 << 20);
    assert_false(settings.jit);
    assert_true(settings.schema_create);
    assert_non_null(settings.grants);
    assert_null(settings.grants[0]);
    assert_int_equal(settings.log_level, LOG_INFO);
    assert_int_equal(settings.stop_timeout_us, 10 * CLOCK_SECOND);
    assert_int_equal(settings.clock_offset_us, 0);
    settings_free(&settings);
}

static void a_missing_named_file_is_an_error(void **state)
{
    const struct settings_source source = {.config_path = "nowhere.lua"};
    struct settings settings;
    struct diag diag;

    (void)state;
    assert_int_equal(settings_load(&source, &settings, &diag), STATUS_CONFIG);
    assert_non_null(strstr(diag.message, "nowhere.lua"));
}

static void durations_and_sizes_are_numbers_or_text(void **state)
{
    struct settings settings;

    (void)state;
    write_file("moontide.conf.lua",
               "return { poll = { min_interval = 0.25, max_interval = '2s' },"
               " limits = { memory = '64MiB', payload = 1000 },"
               " clock_offset = '-1h', stop_timeout = 3 }");
    load(&settings);
    assert_int_equal(settings.poll_min_us, 250000);
    assert_int_equal(settings.poll_max_us, 2000000);
    assert_int_equal(settings.limit_memory, 64 << 20);
    assert_int_equal(settings.limit_payload, 1000);
    assert_int_equal(settings.clock_offset_us, -3600 * CLOCK_SECOND);
    assert_int_equal(settings.stop_timeout_us, 3 * CLOCK_SECOND);
    settings_free(&settings);
}

static void the_command_line_wins_over_environment_over_file(void **state)
{
    struct settings_source source = {.database = NULL};
    struct settings settings;
    struct diag diag;

    (void)state;
    write_file("moontide.conf.lua",
               "return { database = 'sqlite:file.db', batch = 7 }");
    load(&settings);
    assert_string_equal(settings.database, "sqlite:file.db");
    assert_int_equal(settings.batch, 7);
    settings_free(&settings);

    setenv("DATABASE_URL", "sqlite:environment.db", 1);
    setenv("MOONTIDE_BATCH", "8", 1);
    setenv("MOONTIDE_LOG_LEVEL", "warn", 1);
    load(&settings);
    assert_string_equal(settings.database, "sqlite:environment.db");
    assert_int_equal(settings.batch, 8);
    assert_int_equal(settings.log_level, LOG_WARN);
    settings_free(&settings);

    source.database = "sqlite:flag.db";
    assert_int_equal(settings_load(&source, &settings, &diag), STATUS_OK);
    assert_string_equal(settings.database, "sqlite:flag.db");
    settings_free(&settings);
}

static void a_bad_variable_is_named(void **state)
{
    const struct settings_source source = {.config_path = NULL};
    struct settings settings;
    struct diag diag;

    (void)state;
    setenv("MOONTIDE_PARTITIONS", "many", 1);
    assert_int_equal(settings_load(&source, &settings, &diag), STATUS_CONFIG);
    assert_non_null(strstr(diag.message, "MOONTIDE_PARTITIONS"));
    assert_non_null(strstr(diag.message, "\"many\""));
}

static void relative_paths_start_in_the_folder_of_the_file(void **state)
{
    const struct settings_source source = {.config_path = "app/other.lua"};
    struct settings settings;
    struct diag diag;

    (void)state;
    assert_int_equal(access("app", F_OK), -1);
    assert_int_equal(system("mkdir app"), 0);
    write_file("app/other.lua", "return {}");
    assert_int_equal(settings_load(&source, &settings, &diag), STATUS_OK);
    assert_string_equal(settings.app_dir, "app");
    assert_string_equal(settings.database, "sqlite:app/moontide.db");
    settings_free(&settings);

    write_file("app/other.lua", "return { database = 'sqlite:/x/y.db' }");
    assert_int_equal(settings_load(&source, &settings, &diag), STATUS_OK);
    assert_string_equal(settings.database, "sqlite:/x/y.db");
    settings_free(&settings);

    /* what is typed in a shell starts where the shell is */
    setenv("DATABASE_URL", "sqlite:here.db", 1);
    assert_int_equal(settings_load(&source, &settings, &diag), STATUS_OK);
    assert_string_equal(settings.database, "sqlite:here.db");
    settings_free(&settings);
}

static void an_unknown_key_names_file_and_nearest_key(void **state)
{
    (void)state;
    refuse("return { partitons = 4 }", "moontide.conf.lua", "'partitions'");
    refuse("return { limits = { tme = 1 } }", "limits.tme", "'limits.time'");
    refuse("return { zebra_stripes = 1 }", "zebra_stripes", "partitions");
}

static void a_key_of_a_later_version_is_refused(void **state)
{
    static const char *const keys[] = {
        "admin = { listen = 'x' }",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char content[128];

        snprintf(content, sizeof(content), "return { %s }", keys[i]);
        refuse(content, "is not available in this version",
               "moontide.conf.lua");
    }
}

static void several_workers_are_refused_where_one_process_writes(void **state)
{
    struct settings settings;

    (void)state;
    refuse("return { workers = 2 }", "workers",
           "this database lets one process write at a time");
    write_file("moontide.conf.lua", "return { workers = 0 }");
    load(&settings);
    assert_int_equal(settings.workers, 0);
    settings_free(&settings);
}

static void a_bad_value_says_what_is_allowed(void **state)
{
    (void)state;
    refuse("return { partitions = 0 }", "partitions", "from 1 to 1024, not 0");
    refuse("return { partitions = 1.5 }", "partitions", "not 1.5");
    refuse("return { partitions = '4' }", "partitions", "not \"4\"");
    refuse("return { batch = 0/0 }", "batch", "whole number");
    refuse("return { jit = 'yes' }", "jit", "true or false");
    refuse("return { jit = 1 }", "jit", "true or false");
    refuse("return { grants = 'os' }", "grants", "a list");
    refuse("return { database = 'oracle:x' }", "database", "sqlite:PATH");
    refuse("return { database = '' }", "database", "sqlite:PATH");
    refuse("return { limits = { time = '5 parsecs' } }", "limits.time",
           "5 parsecs");
    refuse("return { limits = { payload = -1 } }", "limits.payload", "-1");
    refuse("return { limits = 5 }", "limits", "table of");
    refuse("return { log = { level = 'loud' } }", "log.level", "debug");
    refuse("return { poll = { min_interval = '2s', max_interval = '1s' } }",
           "poll.max_interval", "poll.min_interval");
    refuse("return { schema = { create = 'no' } }", "schema.create",
           "true or false");
}

static void a_file_that_gives_no_table_is_an_error(void **state)
{
    (void)state;
    refuse("return 5", "moontide.conf.lua", "table");
    refuse("return {", "moontide.conf.lua", ":1");
}

static void empty_tables_are_no_unknown_keys(void **state)
{
    struct settings settings;

    (void)state;
    write_file("moontide.conf.lua",
               "return { limits = {}, schema = { tables = {}, aggregates = {}"
               " }, grants = {}, poll = {} }");
    load(&settings);
    settings_free(&settings);
}

static void tables_take_the_prefix_and_aggregates_do_not(void **state)
{
    struct settings settings;

    (void)state;
    write_file("moontide.conf.lua",
               "return { schema = { tables = { consumers = 'READERS' },"
               " prefix = 'ACME_', aggregates = { ['bank.account'] ="
               " { events = 'bank_events', snapshots = 'bank_snaps' } } } }");
    load(&settings);
    assert_string_equal(settings.names.table[TABLE_CONSUMERS], "ACME_READERS");
    assert_string_equal(settings.names.table[TABLE_EVENT_STORE],
                        "ACME_EVENT_STORE");
    assert_int_equal(settings.names.naggregates, 1);
    assert_string_equal(settings.names.aggregates[0].aggregate_type,
                        "bank.account");
    assert_string_equal(settings.names.aggregates[0].events, "bank_events");
    assert_string_equal(settings.names.aggregates[0].snapshots, "bank_snaps");
    settings_free(&settings);
}

static void bad_table_names_name_the_file(void **state)
{
    (void)state;
    refuse("return { schema = { prefix = 'a-b' } }", "moontide.conf.lua",
           "a-b");
    refuse("return { schema = { tables = { konsumers = 'X' } } }",
           "moontide.conf.lua", "konsumers");
    refuse("return { schema = { tables = { consumers = 4 } } }",
           "moontide.conf.lua", "schema.tables.consumers");
    refuse("return { schema = { aggregates = { a = { evnts = 'x' } } } }",
           "moontide.conf.lua", "schema.aggregates.a.evnts");
    refuse("return { schema = { aggregates = { a = { snapshots = 'x' } } } }",
           "moontide.conf.lua", "events");
}

static void values_are_printed_with_origin_and_without_password(void **state)
{
    struct settings settings;
    struct buffer out = BUFFER_EMPTY;

    (void)state;
    write_file("moontide.conf.lua", "return { batch = 7, grants = { 'os' } }");
    setenv("DATABASE_URL", "postgresql://me:secret@h/db?password=secret", 1);
    load(&settings);
    settings_print(&settings, false, &out);
    assert_non_null(strstr(out.data, "batch = 7 (moontide.conf.lua)\n"));
    assert_non_null(strstr(out.data, "partitions = 16 (default)\n"));
    assert_non_null(
        strstr(out.data, "grants = {\"os\"} (moontide.conf.lua)\n"));
    assert_non_null(strstr(out.data, "postgresql://me:***@h/db?password=***"));
    assert_non_null(strstr(out.data, "(DATABASE_URL)"));
    assert_null(strstr(out.data, "secret"));
    buffer_clear(&out);
    settings_print(&settings, true, &out);
    assert_non_null(strstr(
        out.data, "\"batch\":{\"value\":7,\"origin\":\"moontide.conf.lua\"}"));
    buffer_free(&out);
    settings_free(&settings);
}

#define IN_FOLDER(test)                                                        \
    cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_missing_default_file_means_defaults),
        IN_FOLDER(a_missing_named_file_is_an_error),
        IN_FOLDER(durations_and_sizes_are_numbers_or_text),
        IN_FOLDER(the_command_line_wins_over_environment_over_file),
        IN_FOLDER(a_bad_variable_is_named),
        IN_FOLDER(relative_paths_start_in_the_folder_of_the_file),
        IN_FOLDER(an_unknown_key_names_file_and_nearest_key),
        IN_FOLDER(a_key_of_a_later_version_is_refused),
        IN_FOLDER(several_workers_are_refused_where_one_process_writes),
        IN_FOLDER(a_bad_value_says_what_is_allowed),
        IN_FOLDER(a_file_that_gives_no_table_is_an_error),
        IN_FOLDER(empty_tables_are_no_unknown_keys),
        IN_FOLDER(tables_take_the_prefix_and_aggregates_do_not),
        IN_FOLDER(bad_table_names_name_the_file),
        IN_FOLDER(values_are_printed_with_origin_and_without_password),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
