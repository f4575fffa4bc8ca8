#include "base/buffer.h"
#include "script/script.h"
#include "script/source_bundle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char MODELS[] =
    "local moontide = require 'moontide'\n"
    "local factor = require 'lib.factor'\n"
    "return { moontide.projection 'models' { on = { ['spec.Put'] =\n"
    "  function(state) state.n = factor * require('lib.late') end } },\n"
    "  moontide.sql_projection 'days' { tables = 'sql/days.sql',\n"
    "    on = { ['spec.Put'] = function() end } } }\n";

struct place {
    char path[64];
    struct clock clock;
    struct log log;
};

static void put(const struct place *place, const char *name, const char *text)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", place->path, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
    static struct place place;
    static const char *const folders[] = {"handlers", "handlers/lib", "sql"};
    char path[128];
    const char *folder = getenv("TMPDIR");

    place = (struct place){.path = ""};
    snprintf(place.path, sizeof(place.path), "%s/bundleXXXXXX",
             folder != NULL ? folder : P_tmpdir);
    assert_non_null(mkdtemp(place.path));
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", place.path, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    put(&place, "handlers/models.lua", MODELS);
    put(&place, "handlers/another.lua",
        "return require('moontide').projection 'another' {\n"
        "  on = { ['spec.Put'] = function() end } }\n");
    put(&place, "handlers/lib/factor.lua", "return 2");
    put(&place, "handlers/lib/late.lua", "return 3");
    put(&place, "sql/days.sql", "CREATE TABLE days (d INTEGER);");
    *state = &place;
    return 0;
}

static int tear_down(void **state)
{
    const struct place *place = *state;
    char command[128];

    snprintf(command, sizeof(command), "rm -r '%s'", place->path);
    return system(command);
}

static struct script_options options_of(struct place *place)
{
    return (struct script_options){
        .app_dir = place->path,
        .scripts = "handlers",
        .dialect = "sqlite",
        .partitions = 4,
        .limits = {.time_us = CLOCK_SECOND,
                   .memory = 32 << 20,
                   .payload = 1 << 20},
        .clock = &place->clock,
        .log = &place->log,
    };
}

static struct script *load(struct place *place, struct text bundle)
{
    struct script_options options = options_of(place);
    struct script *script = NULL;
    struct diag diag = {.message = ""};

    options.bundle = bundle;
    if (script_open(&options, &script, &diag) != STATUS_OK)
        fail_msg("%s", diag.message);
    return script;
}

static void assert_same(const struct script *a, const struct script *b)
{
    size_t n, m;
    const struct declaration *first = script_declarations(a, &n);
    const struct declaration *second = script_declarations(b, &m);

    assert_string_equal(script_version(a), script_version(b));
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(first[i].name, second[i].name);
        assert_string_equal(first[i].file, second[i].file);
        for (int p = 0; p < FINGERPRINT_PARTS; p++)
            assert_string_equal(first[i].fingerprint.part[p],
                                second[i].fingerprint.part[p]);
        assert_true(text_equal(first[i].tables_sql, second[i].tables_sql));
    }
}

static void a_bundle_is_the_same_version_with_its_folder_gone(void **state)
{
    struct place *place = *state;
    struct script *read = load(place, TEXT_NONE), *again;
    struct buffer bundle = BUFFER_EMPTY, second = BUFFER_EMPTY;
    size_t count;

    (void)script_files(read, &count);
    assert_int_equal(count, 5);
    script_bundle(read, &bundle);
    assert_int_equal(tear_down(state), 0);
    again = load(place, buffer_text(&bundle));
    assert_same(read, again);
    script_bundle(again, &second);
    script_close(again);
    again = load(place, buffer_text(&second));
    assert_same(read, again);
    script_close(again);
    script_close(read);
    buffer_free(&bundle);
    buffer_free(&second);
    assert_int_equal(set_up(state), 0);
}

/* Cut anywhere, or with any byte changed, it is refused or is another bundle;
 * nothing is read past its end (a build with AddressSanitizer would say so). */
static void damaged_bytes_are_refused_or_another_bundle(void **state)
{
    struct script *script = load(*state, TEXT_NONE);
    struct buffer bundle = BUFFER_EMPTY;
    struct source_set *set;
    struct diag diag;

    script_bundle(script, &bundle);
    for (size_t len = 0; len < bundle.len; len++) {
        char *cut = malloc(len + 1);

        assert_non_null(cut);
        memcpy(cut, bundle.data, len);
        assert_int_equal(
            source_bundle_read((struct text){cut, len}, &set, &diag),
            STATUS_INVALID);
        free(cut);
    }
    for (size_t i = 0; i < bundle.len; i++) {
        char kept = bundle.data[i];

        bundle.data[i] = (char)(kept ^ 0x81);
        if (source_bundle_read(buffer_text(&bundle), &set, &diag) == STATUS_OK)
            source_set_free(set);
        bundle.data[i] = kept;
    }
    buffer_append_char(&bundle, 'x');
    assert_int_equal(source_bundle_read(buffer_text(&bundle), &set, &diag),
                     STATUS_INVALID);
    buffer_free(&bundle);
    script_close(script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_bundle_is_the_same_version_with_its_folder_gone, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(
            damaged_bytes_are_refused_or_another_bundle, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
