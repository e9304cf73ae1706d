#!/usr/bin/env python3
"""A Homebrew formula for the tarballs: formula.py DIST TARGET... prints it.

RELEASE_URL is where the files of this release will be.
"""

import hashlib
import os
import pathlib
import sys

import facts

CONDITIONS = {
    "x86_64-unknown-linux-gnu": ("on_linux", "on_intel"),
    "aarch64-unknown-linux-gnu": ("on_linux", "on_arm"),
}

TEMPLATE = """\
class Portway < Formula
  desc "MCP control plane and gateway in one binary"
  homepage "{homepage}"
  version "{version}"
  license "{license}"

{sources}
  def install
    bin.install "portway"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/portway.bash" => "portway"
    zsh_completion.install "completions/_portway"
    fish_completion.install "completions/portway.fish"
    doc.install "THIRD-PARTY.txt"
  end

  def post_install
    (etc/"portway").mkpath
    (var/"portway").mkpath
  end

  service do
    run [opt_bin/"portway", "serve", "--project", etc/"portway", "--data-dir", var/"portway"]
    keep_alive true
    log_path var/"log/portway.log"
    error_log_path var/"log/portway.log"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/portway --version")
  end
end
"""

SOURCE = """\
  {system} do
    {processor} do
      url "{url}"
      sha256 "{digest}"
    end
  end
"""


def main():
    dist = pathlib.Path(sys.argv[1])
    program = facts.program()
    address = os.environ["RELEASE_URL"].rstrip("/")
    sources = []
    for target in sys.argv[2:]:
        file = dist / f"{program['name']}-{program['version']}-{target}.tar.gz"
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        system, processor = CONDITIONS[target]
        sources.append(SOURCE.format(system=system, processor=processor, url=f"{address}/{file.name}", digest=digest))
    homepage = program["homepage"] or address
    print(TEMPLATE.format(**program | {"homepage": homepage}, sources="\n".join(sources)), end="")


if __name__ == "__main__":
    main()
