import { PROBLEMS, type ProblemCode } from '../http/problems.js'

/** What a problem's `type` leads to. */
export function problemPage(code: ProblemCode): string {
  const { status, title, fix } = PROBLEMS[code]
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${code}: ${title}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}code{font-size:1.1em}</style>
<h1>${title}</h1>
<p><code>${code}</code>, status ${status}</p>
<h2>What to do</h2>
<p>${fix.replaceAll('<', '&lt;').replaceAll(/`([^`]*)`/g, '<code>$1</code>')}</p>
</html>
`
}
