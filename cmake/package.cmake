# What scripts/package builds by CPack: a .deb and a tarball that may lie anywhere. Programs and the libraries that they need
# are in lib/shoal, found by $ORIGIN; libc, libstdc++ and libgcc are the system's, and libtorch comes at first need (packaging/shoal).
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # the two programs alone are packed, so nothing else need be built

# RPATH and not RUNPATH: it also serves what our libraries need in their turn.
foreach(program shoal shoal-dht)
  target_link_options(${program} PRIVATE LINKER:--disable-new-dtags)
  set_target_properties(${program} PROPERTIES INSTALL_RPATH "\$ORIGIN")
endforeach()
install(TARGETS shoal shoal-dht RUNTIME DESTINATION lib/shoal)
install(PROGRAMS packaging/shoal DESTINATION bin)
install(PROGRAMS scripts/fetch-torch DESTINATION lib/shoal)
install(FILES scripts/torch-wheels packaging/torch-version DESTINATION lib/shoal)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION share/doc/shoal)
install(FILES packaging/shoal.bash-completion DESTINATION share/bash-completion/completions RENAME shoal)
install(CODE "execute_process(COMMAND \"${PROJECT_SOURCE_DIR}/packaging/man-pages\" \"$<TARGET_FILE:shoal>\" \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/man/man1\" COMMAND_ERROR_IS_FATAL ANY)")
install(CODE "set(shoal_licences \"${PROJECT_SOURCE_DIR}/packaging/licences\")")
install(CODE "set(shoal_programs \"$<TARGET_FILE:shoal>\" \"$<TARGET_FILE:shoal-dht>\")")
install(CODE [[
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${shoal_programs} RESOLVED_DEPENDENCIES_VAR needed UNRESOLVED_DEPENDENCIES_VAR missing
       PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|util|resolv|stdc\\+\\+|gcc_s)\\.so"
                           "^lib(torch_cpu|c10|gomp|cudart|cupti)[.-]")
  if(missing)
    message(FATAL_ERROR "libraries of the package that were not found: ${missing}")
  endif()
  file(INSTALL ${needed} DESTINATION "${CMAKE_INSTALL_PREFIX}/lib/shoal" FOLLOW_SYMLINK_CHAIN)
  execute_process(COMMAND "${shoal_licences}" "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share/doc/shoal/licences" ${needed} COMMAND_ERROR_IS_FATAL ANY)
]])

set(CPACK_PACKAGE_NAME shoal)
set(CPACK_PACKAGE_VENDOR shoal)
set(CPACK_PACKAGE_CONTACT "the maintainers of shoal")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains large models on machines that nobody would call a cluster")
set(CPACK_GENERATOR DEB TXZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.34), libstdc++6 (>= 12), libgcc-s1")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3-pip, unzip")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_THREADS 0)
include(CPack)
