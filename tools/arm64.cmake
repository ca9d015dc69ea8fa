# Toolchain of the preset `arm64`: Debian's cross compiler, the libraries that tools/setup-arm64 unpacked into
# .toolkit/arm64, and qemu-user for the tests where it is installed.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(CLAB_ARM64_ROOT ${CMAKE_CURRENT_LIST_DIR}/../.toolkit/arm64)
get_filename_component(CLAB_ARM64_ROOT ${CLAB_ARM64_ROOT} ABSOLUTE)
set(CMAKE_C_FLAGS_INIT "-isystem ${CLAB_ARM64_ROOT}/usr/include/aarch64-linux-gnu")
set(CMAKE_FIND_ROOT_PATH ${CLAB_ARM64_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH) # cuda.h is the same on every machine
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CLAB_ARM64_ROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CLAB_ARM64_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
set(ENV{PKG_CONFIG_PATH} "")

find_program(CLAB_QEMU_ARM64 NAMES qemu-aarch64 qemu-aarch64-static)
if(CLAB_QEMU_ARM64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${CLAB_QEMU_ARM64};-L;/usr/aarch64-linux-gnu)
endif()
