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

const run = ['MAYFLY_RUN', ...RUN_IDS].map((name) => process.env[name]).find(Boolean) ?? randomUUID()

/** The labels of the inboxes of a test. */
export function labelsOf(titlePath: readonly string[]): Record<'run' | 'title', string> {
  return { run: toLabel(run), title: toLabel(titlePath.join(' › ')) }
}

/** A value that a label may have: the end of the text, without control characters. */
function toLabel(text: string): string {
  const characters = Array.from(text.replaceAll(/[\p{Cc}\p{Cs}]/gu, ' '))
  return characters.slice(-MAX_LABEL_CHARACTERS).join('')
}
