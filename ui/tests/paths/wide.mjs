export const paths = {};
