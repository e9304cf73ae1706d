#!/usr/bin/env python3
"""The licences of everything inside the program, in full, as most of them require: third_party.py TARGET"""

import pathlib
import sys

import parts

NAMES = ("license", "licence", "copying", "notice", "copyright", "unlicense")


def texts(directory):
    files = sorted(path for path in directory.iterdir() if path.name.lower().startswith(NAMES) and path.is_file())
    return [path.read_text(errors="replace").strip() for path in files]


def contents(target):
    root, crates = parts.rust_crates(target)
    for id, package in sorted(crates.items(), key=lambda item: item[1]["name"]):
        # The program's own crates have the licence beside this file.
        if package["source"]:
            directory = pathlib.Path(package["manifest_path"]).parent
            yield f"{package['name']} {package['version']}", package["license"], texts(directory)
    for package in parts.console_packages():
        yield f"{package['name']} {package['version']}", package["license"], texts(package["directory"])


def main():
    users, order = {}, []
    print("Portway contains the following packages.\n")
    for name, license, found in contents(sys.argv[1]):
        print(f"  {name}: {license or 'see below'}")
        for text in found:
            if text not in users:
                order.append(text)
            users.setdefault(text, []).append(name)
    for text in order:
        print("\n" + "=" * 78 + f"\n{', '.join(users[text])}\n\n{text}")


if __name__ == "__main__":
    main()
