// A registry of npm packages with the tarballs of some directories: registry.mjs PORT DIR...
// So that `npx portway` is tried as users type it, without a network.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'

const [port, ...directories] = process.argv.slice(2)
const packages = {}
const files = []
for (const directory of directories) {
  for (const name of readdirSync(directory).filter((name) => name.endsWith('.tgz'))) {
    const path = join(directory, name)
    const manifest = JSON.parse(execFileSync('tar', ['-xzOf', path, 'package/package.json']))
    const integrity = 'sha512-' + createHash('sha512').update(readFileSync(path)).digest('base64')
    const dist = { integrity, tarball: `http://127.0.0.1:${port}/-/${files.length}.tgz` }
    files.push(path)
    const entry = (packages[manifest.name] ??= { name: manifest.name, versions: {}, 'dist-tags': {} })
    entry.versions[manifest.version] = { ...manifest, dist }
    // The last directory has the newest.
    entry['dist-tags'].latest = manifest.version
  }
}

createServer((request, response) => {
  const path = decodeURIComponent(request.url)
  const file = files[path.match(/^\/-\/(\d+)\.tgz$/)?.[1]]
  const entry = packages[path.slice(1)]
  response.statusCode = file || entry ? 200 : 404
  response.end(file ? readFileSync(file) : JSON.stringify(entry ?? {}))
}).listen(Number(port), '127.0.0.1')
