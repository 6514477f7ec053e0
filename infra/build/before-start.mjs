// Runs before `npm start`: builds what changed, unless the start would fail anyway because of a setting or a port.
import { build as bundle } from 'esbuild'
import { build, changes } from './build.mjs'

const { changed, removed } = changes()
if (changed.length + removed.length > 0) {
  const { outputFiles } = await bundle({
    entryPoints: ['libs/runtime/process/check-start.ts'],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    conditions: ['source'],
  })
  const [{ text }] = outputFiles
  const { checkStart } = await import(`data:text/javascript,${encodeURIComponent(text)}`)
  try {
    await checkStart(process.env)
  } catch (error) {
    process.stderr.write(`mayfly: ${error.message}\n`)
    process.exit(1)
  }
}
await build()
