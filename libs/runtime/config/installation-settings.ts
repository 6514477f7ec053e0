import * as kind from './setting.js'

/** What an installation keeps and begins with. */
export const INSTALLATION_SETTINGS = {
  dataDir: kind.text('MAYFLY_DATA_DIR', {
    default: './data',
    help: "Folder of the embedded engine's files.",
  }),
  masterKey: kind.optionalText(
    'MAYFLY_MASTER_KEY',
    'Encrypts inbox keys, and the secrets and URLs of webhooks: 32 bytes in base64, or several separated by commas, the current ' +
      'one first. If unset, the embedded engine makes one at the first start and keeps it in the data folder.',
    (value) => /^[A-Za-z0-9+/]{43}=(\s*,\s*[A-Za-z0-9+/]{43}=)*$/.test(value),
    'must be 32 bytes in base64, or several with commas',
  ),
  bootstrapApiKey: kind.optionalText(
    'MAYFLY_BOOTSTRAP_API_KEY',
    'First API key, with every scope, for the environment development: 20 to 200 visible ASCII characters. ' +
      'If unset, the first start makes one and prints it. A later start with another value adds that key to the first ' +
      'account; the earlier key stays valid until it is revoked.',
    (value) => /^[\x21-\x7e]{20,200}$/.test(value),
    'must be 20 to 200 visible ASCII characters',
  ),
  countsUsage: kind.yesOrNo('MAYFLY_COUNT_USAGE', {
    default: true,
    help:
      'Whether usage is counted in ClickHouse, which the embedded engine runs in its own process. Must be the same in ' +
      'every process of the distributed engine. If counting is turned on later, it begins with the oldest event on the ' +
      'log.',
  }),
  plansFile: kind.optionalText(
    'MAYFLY_PLANS',
    'JSON file of the plans that accounts may have; free, starter, pro and enterprise if unset.',
  ),
} as const
