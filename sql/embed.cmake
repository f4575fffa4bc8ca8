# Turns sql/<dialect>/statement/*.sql and sql/<dialect>/schema/*.sql into C.
#
#   cmake -DSOURCE=<root> -DOUT=<dir> -P sql/embed.cmake
#
# writes <dir>/sql_statements.h, the enum of all statements, and
# <dir>/sql_files.c, their texts and the schema scripts by dialect (the tables
# of host/db/sql_files.h). Texts travel as hexadecimal, because CMake gives
# semicolons, brackets and backslashes a meaning of their own. A statement that
# one dialect has and another lacks is an error, unless one that has it says so
# in its comment: "-- not for: DIALECT DIALECT". Its text is NULL there.
cmake_minimum_required(VERSION 3.20)

if(NOT DEFINED SOURCE OR NOT DEFINED OUT)
  message(FATAL_ERROR "usage: cmake -DSOURCE=<root> -DOUT=<dir> -P embed.cmake")
endif()

# One text as `static const unsigned char NAME[]`; the NUL at its end is not
# part of the text.
function(append_array VARIABLE NAME FILE)
  file(READ "${FILE}" HEX HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" HEX "${HEX}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," BYTES "${HEX}")
  set(${VARIABLE} "${${VARIABLE}}static const unsigned char ${NAME}[] = {
${BYTES}0x00};
" PARENT_SCOPE)
endfunction()

function(write_if_changed FILE CONTENT)
  set(OLD "")
  if(EXISTS "${FILE}")
    file(READ "${FILE}" OLD)
  endif()
  if(NOT EXISTS "${FILE}" OR NOT OLD STREQUAL CONTENT)
    file(WRITE "${FILE}" "${CONTENT}")
  endif()
endfunction()

file(GLOB FOLDERS LIST_DIRECTORIES true RELATIVE "${SOURCE}/sql" "${SOURCE}/sql/*")
list(SORT FOLDERS)
set(DIALECTS "")
set(NAMES "")
foreach(DIALECT IN LISTS FOLDERS)
  if(NOT IS_DIRECTORY "${SOURCE}/sql/${DIALECT}")
    continue()
  endif()
  if(NOT DIALECT MATCHES "^[a-z]+$")
    message(FATAL_ERROR "sql/${DIALECT}: a dialect is named by lower case letters")
  endif()
  file(GLOB STATEMENTS RELATIVE "${SOURCE}/sql/${DIALECT}/statement"
    "${SOURCE}/sql/${DIALECT}/statement/*.sql")
  set(NAMES_${DIALECT} "")
  foreach(STATEMENT IN LISTS STATEMENTS)
    if(NOT STATEMENT MATCHES "^[a-z][a-z0-9_]*\\.sql$")
      message(FATAL_ERROR "sql/${DIALECT}/statement/${STATEMENT}: a statement"
        " is named by lower case letters, digits and underscores")
    endif()
    string(REGEX REPLACE "\\.sql$" "" NAME "${STATEMENT}")
    if(NAME STREQUAL "count")
      message(FATAL_ERROR "sql/${DIALECT}/statement/count.sql: the name is taken")
    endif()
    list(APPEND NAMES_${DIALECT} ${NAME})
  endforeach()
  list(APPEND NAMES ${NAMES_${DIALECT}})
  list(APPEND DIALECTS ${DIALECT})
endforeach()
list(REMOVE_DUPLICATES NAMES)
list(SORT NAMES)

# Dialects that a statement is not for, as `NAME/DIALECT`.
set(EXCEPTIONS "")
foreach(DIALECT IN LISTS DIALECTS)
  foreach(NAME IN LISTS NAMES_${DIALECT})
    file(STRINGS "${SOURCE}/sql/${DIALECT}/statement/${NAME}.sql" MARKER
      REGEX "^-- not for: [a-z ]+$")
    string(REGEX REPLACE "^-- not for: " "" MARKER "${MARKER}")
    separate_arguments(MARKER)
    foreach(OTHER IN LISTS MARKER)
      list(APPEND EXCEPTIONS "${NAME}/${OTHER}")
    endforeach()
  endforeach()
endforeach()

set(MISSING "")
foreach(DIALECT IN LISTS DIALECTS)
  foreach(NAME IN LISTS NAMES)
    if(NOT NAME IN_LIST NAMES_${DIALECT} AND
        NOT "${NAME}/${DIALECT}" IN_LIST EXCEPTIONS)
      string(APPEND MISSING "\n  sql/${DIALECT}/statement/${NAME}.sql")
    elseif(NAME IN_LIST NAMES_${DIALECT} AND
        "${NAME}/${DIALECT}" IN_LIST EXCEPTIONS)
      message(FATAL_ERROR "sql/${DIALECT}/statement/${NAME}.sql is there"
        " although another dialect says that it is not for ${DIALECT}")
    endif()
  endforeach()
endforeach()
if(NOT MISSING STREQUAL "")
  message(FATAL_ERROR "Another dialect has these statements:${MISSING}")
endif()

set(HEADER "/* Made by sql/embed.cmake from sql/<dialect>/statement. */
#ifndef SQL_STATEMENTS_H
#define SQL_STATEMENTS_H

enum sql_statement {
")
foreach(NAME IN LISTS NAMES)
  string(TOUPPER ${NAME} UPPER)
  string(APPEND HEADER "    SQL_${UPPER},\n")
endforeach()
string(APPEND HEADER "    SQL_COUNT
};

#endif
")

# Each table ends with an empty entry, so that none of them has size zero.
set(CODE "/* Made by sql/embed.cmake from sql/. */
#include \"db/sql_files.h\"

")
set(TABLE "")
foreach(DIALECT IN LISTS DIALECTS)
  set(ROWS "")
  foreach(NAME IN LISTS NAMES)
    if(NOT NAME IN_LIST NAMES_${DIALECT})
      string(APPEND ROWS "    {\"${NAME}\", {NULL, 0}},\n")
      continue()
    endif()
    set(ARRAY "${DIALECT}_statement_${NAME}")
    append_array(CODE ${ARRAY} "${SOURCE}/sql/${DIALECT}/statement/${NAME}.sql")
    string(APPEND ROWS "    {\"${NAME}\",
     {(const char *)${ARRAY}, sizeof(${ARRAY}) - 1}},\n")
  endforeach()
  string(APPEND CODE "static const struct sql_file ${DIALECT}_statements[] = {
${ROWS}    {NULL, {NULL, 0}}};
")

  file(GLOB SCRIPTS RELATIVE "${SOURCE}/sql/${DIALECT}/schema"
    "${SOURCE}/sql/${DIALECT}/schema/*.sql")
  list(SORT SCRIPTS)
  set(ROWS "")
  set(COUNT 0)
  foreach(SCRIPT IN LISTS SCRIPTS)
    if(NOT SCRIPT MATCHES "^[0-9][0-9]-[a-z][a-z0-9-]*\\.sql$")
      message(FATAL_ERROR "sql/${DIALECT}/schema/${SCRIPT}: a schema script is"
        " named NN-NAME.sql with two digits and lower case letters")
    endif()
    string(REGEX REPLACE "^[0-9][0-9]-(.*)\\.sql$" "\\1" NAME "${SCRIPT}")
    set(ARRAY "${DIALECT}_schema_${COUNT}")
    append_array(CODE ${ARRAY} "${SOURCE}/sql/${DIALECT}/schema/${SCRIPT}")
    string(APPEND ROWS "    {\"${NAME}\",
     {(const char *)${ARRAY}, sizeof(${ARRAY}) - 1}},\n")
    math(EXPR COUNT "${COUNT} + 1")
  endforeach()
  string(APPEND CODE "static const struct catalog_script ${DIALECT}_scripts[] = {
${ROWS}    {NULL, {NULL, 0}}};
")
  string(APPEND TABLE "    {\"${DIALECT}\", ${DIALECT}_statements,
     ${DIALECT}_scripts, ${COUNT}},\n")
endforeach()
string(APPEND CODE "
const struct sql_dialect sql_dialects[] = {
${TABLE}    {NULL, NULL, NULL, 0}};
")

file(MAKE_DIRECTORY "${OUT}")
write_if_changed("${OUT}/sql_statements.h" "${HEADER}")
write_if_changed("${OUT}/sql_files.c" "${CODE}")
