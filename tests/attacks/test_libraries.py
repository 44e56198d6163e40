#!/usr/bin/env python3
"""Libraries that others chose: search paths of what is built and installed, libraries planted in the current folder."""
import glob
import os
import re
import shutil
import subprocess
import sys
import unittest

import attacks
from attacks import PROGRAM, npy_bytes

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
CHECK = os.path.join(ROOT, "scripts", "check_elf.py")
BUILD = os.path.dirname(os.path.dirname(PROGRAM))
PYTHON, PACKAGES = os.environ.get("LOCKSTEP_PYTHON"), os.environ.get("LOCKSTEP_PYTHON_PACKAGES", "")
HAS_MODULE = bool(PYTHON and glob.glob(os.path.join(PACKAGES, "lockstep", "_core*.so")))
LIBRARIES = ("libcuda.so.1", "libcuda.so", "libnvrtc.so", "libnvrtc.so.12", "libnvrtc.so.13", "libgdal.so", "libgdal.so.32", "libgdal.so.34",
             "libgdal.so.44", "libnetcdf.so", "libnetcdf.so.19", "libhdf5.so", "libhdf5_serial.so.103", "libwgpu_native.so",
             "libwgpu_native-release.so", "libvulkan.so.1", "libcublas.so.12", "libcublasLt.so.12", "liblapack.so.3", "libstdc++.so.6",
             "libz.so.1", "libtbb.so.12", "libtbbmalloc.so.2", "libiomp5.so", "libirml.so.1", "lockstep_video.so", "gdal_evil.so",
             "libevil.so", "lib64/libnvrtc.so.13", "lib64/libcublas.so.12", "nvidia/cu13/lib/libnvrtc.so.13", "wgpu/resources/libwgpu_native.so",
             "lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13")
# Folders of the environment, all of them the current one. With a relative LOCKSTEP_LIBRARY_PATH commands end before they search, so that one is tried by itself.
OWN = "LOCKSTEP_LIBRARY_PATH"
HERE = ("VIRTUAL_ENV", "PYTHONPATH", "CUDA_HOME", "CUDA_PATH", "GDAL_DRIVER_PATH", "GDAL_PYTHON_DRIVER_PATH",
        "HDF5_PLUGIN_PATH", "VK_LAYER_PATH", "VK_ADD_LAYER_PATH", "VK_ADD_DRIVER_FILES", "XDG_DATA_HOME", "XDG_DATA_DIRS", "XDG_CONFIG_HOME",
        "XDG_CONFIG_DIRS", "OPENSSL_MODULES")
# Parts that libraries of the system load by name alone: the dynamic loader finds them in its own folders. oneTBB looks for its
# allocator and for instruments that watch it, GDAL and Vulkan for what is installed with them.
BY_NAME = re.compile(r"libiomp5\.so|libtbb\w*\.so(\.\d+)?|libirml(_debug)?\.so\.\d+|lib(wayland-client|xcb[\w-]*|X11[\w-]*|LLVM[\w.-]*|drm\w*|udev|nvidia-[\w-]+"
                     r"|cuda|dbghelp|nss_\w+|gcc_s|renderdoc)\.so[.\d]*|libvulkan\.so(\.1)?")


class SearchPaths(attacks.Attack):
    def check(self, *arguments):
        return subprocess.run([sys.executable, CHECK, *arguments], capture_output=True, text=True)

    def clean_below(self, *arguments):
        done = self.check(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)

    @unittest.skipUnless(shutil.which("readelf"), "needs readelf")
    def test_of_the_build(self):
        self.clean_below(BUILD)

    @unittest.skipUnless(shutil.which("readelf") and shutil.which("cmake"), "needs readelf and cmake")
    def test_of_what_is_installed(self):
        for component, file in (("portable", PROGRAM), ("devel", os.path.join(BUILD, "lib", "liblockstep.so"))):
            if not os.path.exists(file):
                continue
            done = subprocess.run(["cmake", "--install", BUILD, "--component", component, "--prefix", self.path(component)], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.clean_below("--installed", self.path(component))

    @unittest.skipUnless(shutil.which("readelf") and shutil.which("cc"), "needs readelf and a C compiler")
    def test_wrong_ones_are_found(self):
        self.write("a.c", "int f(void) { return 0; }\n")
        os.mkdir(self.path("shared"))
        os.chmod(self.path("shared"), 0o777)
        os.mkdir(self.path("own"))
        library = self.path("a.so")
        for flags, finding in (((), ""), (("-Wl,-rpath,$ORIGIN/own",), ""), (("-Wl,-rpath,:",), "'' is relative"), (("-Wl,-rpath,lib",), "'lib' is relative"),
                               (("-Wl,--disable-new-dtags,-rpath,/usr/lib:.",), "'.' is relative"),
                               (("-Wl,-rpath,$ORIGIN/shared",), "everybody may write"), (("-Wl,-rpath,$ORIGIN/shared/none",), "everybody may write"),
                               (("-Wl,-rpath," + self.path("shared"),), "everybody may write"), (("-Wl,-z,execstack",), "stack is executable")):
            subprocess.run(["cc", "-shared", "-fPIC", *flags, "-o", library, self.path("a.c")], check=True, capture_output=True)
            done = self.check(library)
            self.assertEqual(done.returncode, 1 if finding else 0, (flags, done.stderr))
            self.assertIn(finding, done.stderr)
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-rpath,/usr/lib", "-o", library, self.path("a.c")], check=True)
        self.assertEqual(self.check(library).returncode, 0)
        self.assertIn("of the machine that built it", self.check("--installed", library).stderr)
        self.assertEqual(self.check(self.path("own")).returncode, 1, "nothing to check is no success")


@unittest.skipUnless(shutil.which("cc"), "needs a C compiler")
class Planted(attacks.Attack):
    def setUp(self):
        super().setUp()
        self.here, self.marker = self.path("here"), self.path("ran")
        source = self.write("evil.c", '#include <stdio.h>\n__attribute__((constructor)) static void run(void) '
                                      '{ FILE* f = fopen("%s", "w"); if (f) fclose(f); }\n' % self.marker)
        library = self.path("evil.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        for name in LIBRARIES:
            os.makedirs(os.path.dirname(os.path.join(self.here, name)), exist_ok=True)
            shutil.copy(library, os.path.join(self.here, name))
        manifest = '{"file_format_version": "1.0.0", "ICD": {"library_path": "./libevil.so", "api_version": "1.3.0"}}'
        self.write("here/evil.json", manifest)
        os.makedirs(os.path.join(self.here, "vulkan", "icd.d"))
        self.write("here/vulkan/icd.d/evil.json", manifest.replace("./libevil.so", os.path.join(self.here, "libevil.so")))
        self.write("here/dsm.tif", b"II*\0" + b"\0" * 64)
        self.write("here/dsm.npy", npy_bytes((24, 24)))

    def test_the_planted_library_runs_where_it_is_asked_for(self):
        done = attacks.run("devices", env={"LD_PRELOAD": os.path.join(self.here, "libevil.so")})
        self.assertEqual(done.returncode, 0)
        self.assertTrue(os.path.exists(self.marker), "the attack of this test works")

    def not_run_by(self, words, variables):
        self.survives(*words, cwd=self.here, env=variables)
        self.assertFalse(os.path.exists(self.marker), (words, variables))

    def test_in_the_current_folder(self):
        raster = ("urban", "walls", "--dsm", "dsm.tif", "--out", "out")
        for words in (("devices",), raster, ("urban", "walls", "--dsm", "dsm.npy", "--pixel-size", "1", "--out", "out"),
                      ("flow", "run", "--n", "16", "--steps", "1", "--save-every", "1", "--format", "nc", "--device", "cpu", "--out", "nc")):
            self.not_run_by(words, {})
            self.not_run_by(words, {name: "." for name in HERE})
            self.not_run_by(words, {name: "" for name in (OWN, *HERE)})

    def test_named_by_one_variable(self):
        raster = ("urban", "walls", "--dsm", "dsm.tif", "--out", "out")
        for name in (OWN, *HERE):
            for value in (".", "", ":", "./", "..:../here"):
                self.not_run_by(raster if name.startswith(("GDAL", "HDF5")) else ("devices",), {name: value})
        for value in (".", "/none", self.here + ":."):
            self.refuses("devices", env={OWN: value}, names=OWN)
        for name in ("VK_ICD_FILENAMES", "VK_DRIVER_FILES", "VK_ADD_DRIVER_FILES", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"):
            for value in ("evil.json", "./evil.json", "libevil.so", "./libevil.so"):
                self.not_run_by(("devices",), {name: value})

    @unittest.skipUnless(HAS_MODULE, "no Python module: LOCKSTEP_PYTHON and LOCKSTEP_PYTHON_PACKAGES name none")
    def test_in_the_current_folder_of_python(self):
        for module in ("numpy", "lockstep", "nanobind", "_core", "sitecustomize"):
            self.write(f"here/{module}.py", f"open({self.marker!r}, 'w').close()\n")
        for extension in ("_core.abi3.so", "_core.cpython-311-x86_64-linux-gnu.so"):
            shutil.copy(self.path("evil.so"), os.path.join(self.here, extension))
        script = self.write("script.py", "import os\nimport lockstep as ls\nprint([d for d in ls.devices()])\n"
                                         "from lockstep import flow, forecast, pde, solve, urban\n")
        for words in ((script,), ("-P", "-m", "lockstep", "devices"), ("-P", "-m", "lockstep", "urban", "walls", "--dsm", "dsm.tif", "--out", "out")):
            for variables in ({}, {name: "." for name in HERE if name != "PYTHONPATH"}):
                env = {**os.environ, **variables, "PYTHONPATH": PACKAGES}
                done = subprocess.run([PYTHON, *words], cwd=self.here, env=env, capture_output=True, text=True, timeout=300)
                self.assertIn(done.returncode, (0, 2), done.stderr)
                self.assertFalse(os.path.exists(self.marker), (words, variables))


class Loaded(attacks.Attack):
    def test_by_absolute_path(self):
        """As the dynamic loader reports it: what the program loads itself has an absolute path, the rest is of the table."""
        self.write("dsm.npy", npy_bytes((24, 24)))
        checked = 0
        for words in (("devices",), ("urban", "sample", "--size", "16", "--out", self.path("s")),
                      ("flow", "run", "--n", "16", "--steps", "1", "--save-every", "1", "--format", "nc", "--device", "cpu", "--out", self.path("f"))):
            done = attacks.run(*words, env={"LD_DEBUG": "files"})
            self.assertIn(done.returncode, (0, 2), done.stderr[-2000:])
            for name, by in re.findall(rb"file=(\S+) \[0\];  dynamically loaded by (\S+)", done.stderr):
                name, by = os.fsdecode(name), os.fsdecode(by)
                checked += 1
                if not name.startswith("/"):
                    self.assertNotEqual(os.path.basename(by), "lockstep", name)
                    self.assertRegex(name, f"^({BY_NAME.pattern})$", by)
        self.assertGreater(checked, 0)


if __name__ == "__main__":
    unittest.main()
