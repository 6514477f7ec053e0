import { randomUUID } from 'node:crypto'

const MAX_LABEL_CHARACTERS = 128

/** What CI systems call a run: GitHub, GitLab, CircleCI, Buildkite, Azure and Jenkins. */
const RUN_IDS = [
  'GITHUB_RUN_ID',
  'CI_PIPELINE_ID',
  'CIRCLE_WORKFLOW_ID',
  'BUILDKITE_BUILD_ID',
  'BUILD_BUILDID',
  'BUILD_TAG',
]

/**
 * The name of the test run: MAYFLY_RUN, the id that the CI system gives to it, or random. Sets MAYFLY_RUN, so that
 * processes that start later have the same name.
 */
export function runName(): string {
  return (process.env.MAYFLY_RUN ||= RUN_IDS.map((name) => process.env[name]).find(Boolean) ?? randomUUID())
}

/** The labels of the inboxes of a test, from its title and those of its suites. */
export function testLabels(titlePath: readonly string[]): Record<'run' | 'title', string> {
  return { run: toLabel(runName()), title: toLabel(titlePath.join(' › ')) }
}

/** A value that a label may have: the end of the text, without control characters. */
function toLabel(text: string): string {
  const characters = Array.from(text.replaceAll(/[\p{Cc}\p{Cs}]/gu, ' '))
  return characters.slice(-MAX_LABEL_CHARACTERS).join('')
}
