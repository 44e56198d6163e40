#!/usr/bin/env python3
"""Malformed files of every format: exit code 2, the file's name, and little memory."""
import base64
import struct
import unittest
import zlib

import attacks
from attacks import npy_bytes, zip_bytes

PDE = ("pde", "loss", "{}", "--spacing", "0.1,0.1,0.1", "--dt", "0.1")
WALLS = ("urban", "walls", "--dsm", "{}", "--out", "{}.out")
FLOW = ("flow", "run", "--ic", "{}", "--steps", "1", "--out", "{}.out")
COMPARE = ("flow", "compare", "{}", "{}")
DECODE = ("flow", "decode", "{}", "--out", "{}.nc")
MESH = ("solve", "mesh", "{}", "--energy", "springs")
CURVE = ("forecast", "curve", "{}")
ROLLOUT = ("forecast", "rollout", "{}")
CONFIG = ("devices", "--config", "{}")

DEEP = 100_000
BINARY_PLY = "ply\nformat binary_little_endian 1.0\n"
VERTEX = "property float x\nproperty float y\nproperty float z\n"
MAT5 = b"MATLAB 5.0".ljust(124) + b"\x00\x01IM"

# Made by h5py: data in the file secret.bin, a link to other.nc, a virtual dataset of it, a group that holds the root.
HDF5 = {name: zlib.decompress(base64.b85decode(text)) for name, text in {
    "external_storage": "c-rgqaB<`1lHy_j0S*oZ76t(ZWbhvfHn5`dVe$!3nh{EOK<O1sFmXn(oCH){5NbZUx{x4OSCH!eXaHtU1`CAdU>F4>5qP*d27u@YC?A$ePcWgX%g;?sPee+O9u(Tk$iN0MixI}RfY8j0DCwRBjm9O;49p22IY9+^sF(tSI0u7xJyf0*n8HEwOiWB*BiI=<z<fq%UNXRu4;&a^;*gxi%m~Xt4rnSZs1gqnX#NafK~-0rnp~7xqL-AJ2jK_%`MZGJ4|BHy^JtnT2LJ%m6+LG",
    "external_link": "c-rgqaB<`1lHy_j0S*oZ76t(ZWbhvfDwt9EF!=;1%?PDCp!5nRm^ceqP68?}05x9$YF-3XJS51~71?}rdq%;?1|F`C0m$iv14^G@LRAM#hXGWwmkFM7v8PNfpi3B$)Uz=tK-|IMz?z?%nw}`gz>r^(ky@mem&~9K76Hox0GKR5F8",
    "virtual_dataset": "c-rgqaB<`1lHy_j0S*oZ76t(ZWbhvf7$ng6P>=wn8KHCslwQFE6K4d=LA5goLd{247ZT*^3R3+a4Z!R%V1dva45MHq0uNWm01zDk<-=0x2_{r^`MIg-iAd?ugF<^58Q36ZF~ay35Sp10CEc^2(YVB!fjI#rC#WC~6;ogk=U@=8hsv`8Q#eSTiJ6HJlHMUcWnqRTeTd0IP%en4&CZpL$ceNC!G8WOpd1a$hYHN2X>$~ef}slBo&9|nkqT5;xfR2JR*>bFWTY19<t0N)SY{+C5MV;$D}c*6RCxw?`3J$zEFE4Ui#PC(#>FTY1*2dTjDk@x3P!;w7zLwX6pVsVKq~+M1d2H6",
    "cycle_of_groups": "c-rgqaB<`1lHy_j0S*oZ76t(ZWbhvf3OG>tF!=;1%?PDCp!5nRm^dQ?h$#UT7lfLRt}Z0V)fJ@rKN^79^MDmXb1;m8kqA6o9Romg1e6a;r6-tB)g_{(M-K|^WduXa^y|S4;b*WCmwq+aN7L_U`o&DY9jvJ8lBk@1gZ=znKq(lO?i85O%tuSdqky<@BvkK>0_*?)Uvoqv",
}.items()}
FILES = {
    "npy_without_header": ("a.npy", b"\x93NUMPY\x01\x00", WALLS),
    "npy_header_longer_than_the_file": ("a.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", WALLS),
    "npy_shape_of_exabytes": ("a.npy", npy_bytes((1 << 31, 1 << 31), b""), WALLS),
    "npy_shape_that_overflows": ("a.npy", npy_bytes((1 << 62, 1 << 62), b""), WALLS),
    "npy_shape_beyond_64_bits": ("a.npy", npy_bytes((10 ** 30, 1), b""), WALLS),
    "npy_negative_shape": ("a.npy", npy_bytes((-4, 4), b"\0" * 64), WALLS),
    "npy_of_objects": ("a.npy", npy_bytes((1, 1), b"cos\nsystem\n(S'true'\ntR.", "|O"), WALLS),
    "npy_deep_tuples": ("a.npy", b"\x93NUMPY\x02\x00" + struct.pack("<I", DEEP) + b"(" * DEEP, WALLS),
    "npy_text_for_shape": ("a.npy", npy_bytes((), b"", header="{'descr': '<f4', 'fortran_order': False, 'shape': 'x'}"), WALLS),
    "npy_thousands_of_axes": ("a.npy", b"\x93NUMPY\x02\x00" + struct.pack("<I", 2 * DEEP + 60) + (
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + b"1," * DEEP + b")}").ljust(2 * DEEP + 60), WALLS),
    "tif_of_zeros": ("a.tif", b"\0" * 4096, WALLS),
    "tif_directory_that_points_at_itself": ("a.tif", b"II*\0\x08\0\0\0" + struct.pack("<HHHIIHHIII", 2, 256, 4, 1, 1 << 31, 257, 4, 1, 1 << 31, 8), WALLS),
    "tif_of_2_to_the_62_pixels": ("a.tif", b"II*\0\x08\0\0\0" + struct.pack("<H", 9) + b"".join(
        struct.pack("<HHII", tag, 4, 1, value) for tag, value in ((256, 1 << 30), (257, 1 << 30), (258, 32), (259, 1), (262, 1), (273, 8), (277, 1), (278, 1 << 30), (279, 4))) + b"\0" * 4, WALLS),
    "asc_with_endless_counts": ("a.asc", "ncols 99999999999\nnrows 99999999999\nxllcorner 0\nyllcorner 0\ncellsize 1\n1 2 3\n", WALLS),
    "netcdf_of_128_gib": ("a.nc", b"CDF\x02" + struct.pack(">I", 0) + struct.pack(">II", 10, 1) + struct.pack(">I", 1) + b"n\0\0\0" + struct.pack(">I", 0x7FFFFFFF)
                          + struct.pack(">II", 0, 0) + struct.pack(">II", 11, 1) + struct.pack(">I", 5) + b"omega\0\0\0" + struct.pack(">III", 2, 0, 0)
                          + struct.pack(">II", 0, 0) + struct.pack(">IIQ", 5, 0x7FFFFFFC, 128), FLOW),
    "netcdf_cut_short": ("a.nc", b"CDF\x01\0\0", FLOW),
    "netcdf_of_2_to_the_30_dimensions": ("a.nc", b"CDF\x01" + struct.pack(">III", 0, 10, 1 << 30) + struct.pack(">I", 1) + b"n\0\0\0" + struct.pack(">I", 4), FLOW),
    "netcdf_of_2_to_the_31_attributes_as_raster": ("a.nc", b"CDF\x02" + struct.pack(">IIIII", 0, 0, 0, 12, (1 << 31) - 1) + b"\0" * 64, WALLS),
    "netcdf_dimension_that_is_not_there": ("a.nc", b"CDF\x01" + struct.pack(">I", 0) + struct.pack(">II", 10, 1) + struct.pack(">I", 1) + b"n\0\0\0" + struct.pack(">I", 4)
                                          + struct.pack(">II", 0, 0) + struct.pack(">II", 11, 1) + struct.pack(">I", 5) + b"omega\0\0\0" + struct.pack(">II", 1, 0x7FFFFFFF)
                                          + struct.pack(">II", 0, 0) + struct.pack(">III", 5, 16, 128) + b"\0" * 64, FLOW),
    **{f"hdf5_{name}": ("a.nc", data, FLOW) for name, data in HDF5.items()},
    **{f"hdf5_{name}_as_raster": ("a.nc", data, WALLS) for name, data in HDF5.items()},
    "hdf5_cut_short": ("a.nc", b"\x89HDF\r\n\x1a\n" + b"\0" * 40, FLOW),
    "netcdf_to_compare": ("a.nc", b"CDF\x01\0\0", COMPARE),
    "mat_element_longer_than_the_file": ("a.mat", MAT5 + struct.pack("<II", 14, 0xFFFFFFF0), FLOW),
    "mat_compressed_nonsense": ("a.mat", MAT5 + struct.pack("<II", 15, 64) + b"x" * 64, FLOW),
    "mat_dimensions_that_overflow": ("a.mat", MAT5 + struct.pack("<IIIIIIIIii", 14, 48, 6, 8, 6, 0, 5, 8, 0x7FFFFFFF, 0x7FFFFFFF) + b"\0" * 16, FLOW),
    "mat_of_version_4": ("a.mat", struct.pack("<iiiii", 0, 1 << 30, 1 << 30, 0, 6) + b"omega\0", FLOW),
    "encoded_fields_of_nonsense": ("a.npz", b"PK\x05\x06" + b"\xff" * 18, DECODE),
    "stl_of_four_billion_triangles": ("a.stl", b"\0" * 80 + struct.pack("<I", 0xFFFFFFFF), MESH),
    "stl_text_without_end": ("a.stl", "solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0\n", MESH),
    "ply_of_10_to_the_18_vertices": ("a.ply", BINARY_PLY + "element vertex 1000000000000000000\n" + VERTEX + "end_header\n", MESH),
    "ply_negative_count": ("a.ply", BINARY_PLY + "element vertex -1\n" + VERTEX + "end_header\n", MESH),
    "ply_element_of_no_bytes": ("a.ply", BINARY_PLY + "element ghost 4000000000\nelement vertex 1\n" + VERTEX + "end_header\n" + "\0" * 12, MESH),
    "ply_list_longer_than_the_file": ("a.ply", BINARY_PLY.encode() + b"element vertex 1\n" + VERTEX.encode() + b"element face 1\nproperty list uint int vertex_indices\nend_header\n"
                                      + b"\0" * 12 + b"\xff\xff\xff\xff", MESH),
    "ply_face_beyond_its_vertices": ("a.ply", "ply\nformat ascii 1.0\nelement vertex 1\n" + VERTEX + "element face 1\nproperty list uchar int vertex_indices\nend_header\n0 0 0\n3 0 1 4000000\n", MESH),
    "ply_header_without_end": ("a.ply", "ply\nformat ascii 1.0\n" + "comment x\n" * DEEP, MESH),
    "obj_face_zero": ("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 0 1 2\n", MESH),
    "obj_face_beyond_64_bits": ("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 99999999999999999999999\n", MESH),
    "obj_face_too_far_back": ("a.obj", "v 0 0 0\nf -1 -2 -9223372036854775808\n", MESH),
    "obj_of_infinities": ("a.obj", "v inf nan 1e999\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", MESH),
    "obj_line_of_megabytes": ("a.obj", "v " + "9" * 4_000_000, MESH),
    "g2o_names_beyond_64_bits": ("a.g2o", "VERTEX_SE2 99999999999999999999 0 0 0\n", ("solve", "g2o", "{}")),
    "g2o_edge_to_nowhere": ("a.g2o", "VERTEX_SE2 0 0 0 0\nEDGE_SE2 0 9 1 0 0 1 0 0 1 0 1\n", ("solve", "g2o", "{}")),
    "g2o_of_zeros": ("a.g2o", b"\0" * 4096, ("solve", "g2o", "{}")),
    "bal_of_10_to_the_18_cameras": ("a.txt", "1000000000000000000 1000000000000000000 1000000000000000000\n", ("solve", "bal", "{}")),
    "bal_negative_counts": ("a.txt", "-1 -1 -1\n", ("solve", "bal", "{}")),
    "bal_camera_beyond_its_counts": ("a.txt", "1 1 1\n7 7 0 0\n" + "0\n" * 12, ("solve", "bal", "{}")),
    "nist_of_nothing": ("a.dat", b"\xff" * 4096, ("solve", "nist", "{}")),
    "sketch_deep": ("a.toml", "a = " + "[" * DEEP, ("solve", "sketch", "{}")),
    "sketch_deep_key": ("a.toml", "a" + ".a" * DEEP + " = 1\n", ("solve", "sketch", "{}")),
    "config_deep": ("a.toml", "a = " + "[" * DEEP, CONFIG),
    "config_deep_tables": ("a.toml", "a = " + "{a = " * DEEP, CONFIG),
    "config_of_zeros": ("a.toml", b"\0" * 4096, CONFIG),
    "task_deep": ("a.toml", "a = " + "[" * DEEP, ("forecast", "train", "{}", "--out", "{}.out")),
    "log_of_deep_json": ("a.jsonl", '{"loss": ' + "[" * DEEP + "\n", CURVE),
    "log_of_deep_objects": ("a.jsonl", '{"a":' * DEEP + "\n", CURVE),
    "log_of_other_types": ("a.jsonl", '{"step": {}, "loss": []}\n[1]\nnull\n', CURVE),
    "log_of_zeros": ("a.csv", b"\0" * 4096, CURVE),
    "log_of_unclosed_quotes": ("a.csv", 'step,loss\n1,"' + "x" * 1_000_000, CURVE),
    "log_of_one_column_each_byte": ("a.csv", "," * 500_000 + "\n" + "1\n" * 50, CURVE),
    "events_longer_than_the_file": ("events.out.tfevents.1", struct.pack("<QI", 1 << 63, 0), CURVE),
    "events_without_checksum": ("events.out.tfevents.1", struct.pack("<QI", 4, 0) + b"abcd\0\0\0\0", CURVE),
    "model_of_nothing": ("a.npz", b"", ROLLOUT),
    "model_of_one_array": ("a.npz", zip_bytes([("W_z.npy", npy_bytes((1, 1)))]), ROLLOUT),
    "safetensors_header_longer_than_the_file": ("a.safetensors", struct.pack("<Q", 1 << 62) + b"{", ROLLOUT),
    "safetensors_deep": ("a.safetensors", struct.pack("<Q", DEEP) + b"[" * DEEP, ROLLOUT),
    "epw_without_header": ("a.epw", "1,2,3\n" * 10, None),
    "epw_of_commas": ("a.epw", "," * 1_000_000, None),
    "weather_of_zeros": ("a.csv", b"\0" * 4096, None),
    "weather_time_beyond_64_bits": ("a.csv", "time,Ta,RH,wind,Kglobal\n99999999999999999999-01-01T00:00,1,1,1,1\n", None),
}


class Headers(attacks.Attack):
    def attack(self, name, data, command):
        file = self.write(name, data)
        if command is None:
            self.write("dsm.npy", npy_bytes((8, 8)))
            command = ("urban", "run", "--dsm", self.path("dsm.npy"), "--pixel-size", "1", "--weather", "{}", "--lat", "57", "--lon", "12",
                       "--utc-offset", "1", "--out", "{}.out")
        self.refuses(*(word.replace("{}", file) for word in command), names=name)

    def test_idx_of_four_billion_pictures(self):
        for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
            self.write(name, struct.pack(">IIII", 0x803 if "images" in name else 0x801, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF))
        self.refuses("forecast", "train", "mnist", "--data", self.folder, "--out", self.path("out"), names="idx")

    def test_folder_for_a_file(self):
        for command in (WALLS, PDE, MESH, CURVE, CONFIG):
            self.refuses(*(word.replace("{}", self.folder) for word in command), names=self.folder)


for title, (file_name, content, words) in FILES.items():
    setattr(Headers, "test_" + title, lambda self, a=file_name, b=content, c=words: self.attack(a, b, c))

if __name__ == "__main__":
    unittest.main()
