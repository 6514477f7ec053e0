/**
 * The form of the views: a digest of the tables' declarations and of the types of what they store. Views of another form
 * are computed again from the log. Written by `npm run generate`.
 */
export const VIEWS_FORM = '4f61e24eb89633d9'
