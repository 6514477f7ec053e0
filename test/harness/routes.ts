import type { Mayfly } from './mayfly.js'

/** The routes of a server, each as `<method> <path>`, which it logs at the level `debug` when it begins to listen. */
export function registeredRoutes(mayfly: Mayfly): string[] {
  const { stdout, stderr } = mayfly.output()
  const line = (stdout + stderr).split('\n').find((each) => each.includes('"accepting requests"')) ?? '{}'
  const { routes = [] } = JSON.parse(line) as { routes?: string[] }
  return routes
}
