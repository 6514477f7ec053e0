// Written by `npm run generate`.

/** What can be chosen for the members of each role. */
export const ROLES = {
  owner: { readsMail: 'always', isRestrictable: false },
  admin: { readsMail: 'by default', isRestrictable: false },
  developer: { readsMail: 'always', isRestrictable: true },
  viewer: { readsMail: 'always', isRestrictable: true },
  auditor: { readsMail: 'if given', isRestrictable: true },
} as const
