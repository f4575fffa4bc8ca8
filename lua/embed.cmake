# Writes OUT/lua_files.c: every lua/moontide/*.lua, byte for byte, in the
# table of host/script/lua_files.h. Run as
#   cmake -DSOURCE=<root> -DOUT=<dir> -P embed.cmake

file(GLOB FILES ${SOURCE}/lua/moontide/*.lua)
list(SORT FILES)

set(ARRAYS "")
set(ROWS "")
set(COUNT 0)
foreach(FILE IN LISTS FILES)
  get_filename_component(NAME ${FILE} NAME_WE)
  if(NAME STREQUAL init)
    set(MODULE moontide)
  else()
    set(MODULE moontide.${NAME})
  endif()
  # As numbers: a string literal has a length limit and its own escapes.
  file(READ ${FILE} HEX HEX)
  string(REGEX REPLACE "(..)" "0x\\1," BYTES "${HEX}")
  string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n"
    BYTES "${BYTES}")
  string(APPEND ARRAYS
    "static const unsigned char file_${COUNT}[] = {\n${BYTES}0x00};\n\n")
  string(APPEND ROWS "    {\"${MODULE}\", \"@moontide/${NAME}.lua\",\n"
    "     (const char *)file_${COUNT}, sizeof(file_${COUNT}) - 1},\n")
  math(EXPR COUNT "${COUNT} + 1")
endforeach()

file(WRITE ${OUT}/lua_files.c "/* Made by lua/embed.cmake. */
#include \"script/lua_files.h\"

${ARRAYS}const struct lua_file lua_files[] = {
${ROWS}    {NULL, NULL, NULL, 0},
};
const size_t lua_files_count = ${COUNT};
")
