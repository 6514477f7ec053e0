import * as kind from './setting.js'

/** What an installation keeps and begins with. */
export const INSTALLATION_SETTINGS = {
  dataDir: kind.text('MAYFLY_DATA_DIR', {
    default: './data',
    help: "Folder of the embedded engine's files.",
  }),
  masterKey: kind.optionalText(
    'MAYFLY_MASTER_KEY',
    'Wraps inbox keys and seals the secrets of webhooks: 32 bytes in base64, or several with commas, the current one ' +
      'first. ' +
      'Made at first start and kept in the data folder where unset.',
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
      'Whether usage is counted in ClickHouse, which the embedded engine has in its own process; the same in every ' +
      'process of the distributed engine. What is left out is counted at a later start, as far as the log goes back.',
  }),
  plansFile: kind.optionalText(
    'MAYFLY_PLANS',
    'JSON file of the plans that accounts may have; free, starter, pro and enterprise where unset.',
  ),
} as const
