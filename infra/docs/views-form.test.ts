import { VIEWS_FORM } from '#libs/ports/read-model/views-form.js'
import { computeViewsForm } from './views-form.js'

describe('the form of the views', () => {
  it('is that of the tables and of what they store', () => {
    // If this fails, run `npm run docs`: rows that an earlier version wrote are of another form.
    expect(VIEWS_FORM).toBe(computeViewsForm())
  })
})
