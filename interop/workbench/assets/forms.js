// Forms from the JSON schemas of tools: a field for each value, whatever nests in it.

import { make } from "./dom.js";

let count = 0;

/** The schema that is meant: behind a reference, or the one that is not null. */
const meant = (schema, root) => {
  if (schema?.$ref)
    return meant(
      schema.$ref
        .replace(/^#\//, "")
        .split("/")
        .reduce((at, key) => at?.[key], root) ?? {},
      root,
    );
  const choices = schema?.anyOf ?? schema?.oneOf;
  if (choices) {
    const known = choices.filter((one) => one.type !== "null");
    return meant({ ...known[0], description: schema.description ?? known[0]?.description }, root);
  }
  if (schema?.allOf) return meant({ ...schema.allOf[0], description: schema.description }, root);
  const type = Array.isArray(schema?.type)
    ? schema.type.find((one) => one !== "null")
    : schema?.type;
  return { ...schema, type: type ?? (schema?.properties ? "object" : "string") };
};

/** A name as people read it: "max_price" becomes "Max price". */
const title = (name) => {
  const words = name
    .replace(/_/g, " ")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
};

/**
 * A field for a value.
 * @returns {{node: HTMLElement, read: () => unknown}} the field, and its value; undefined for nothing
 */
const field = (name, given, root, required) => {
  const schema = meant(given, root);
  const id = `field-${(count += 1)}`;
  const hint = schema.description
    ? make("small", { class: "quiet", id: `${id}-hint` }, schema.description)
    : "";
  const common = { id, required, "aria-describedby": hint ? `${id}-hint` : undefined };
  const label = make("label", { for: id }, name, required ? "" : " (optional)");
  const wrap = (input, read) => ({
    node: make("div", { class: "field" }, label, input, hint),
    read,
  });

  if (schema.type === "object") return group(name, schema, root, required);
  if (schema.type === "array") return list(name, schema, root);
  const choices = schema.enum ?? (schema.const === undefined ? null : [schema.const]);
  if (choices) {
    const options = choices.map((one, at) => make("option", { value: at }, String(one)));
    const input = make(
      "select",
      common,
      make("option", { value: "" }, required ? "Choose …" : "None"),
      ...options,
    );
    return wrap(input, () => (input.value === "" ? undefined : choices[Number(input.value)]));
  }
  if (schema.type === "boolean") {
    const input = make("input", { ...common, type: "checkbox", required: false });
    return wrap(input, () => input.checked);
  }
  if (schema.type === "integer" || schema.type === "number") {
    const step = schema.type === "integer" ? 1 : "any";
    const input = make("input", {
      ...common,
      type: "number",
      step,
      min: schema.minimum,
      max: schema.maximum,
    });
    return wrap(input, () => (input.value === "" ? undefined : Number(input.value)));
  }
  const long =
    (schema.maxLength ?? 0) > 200 || /\b(text|content|code|body|program|query)\b/i.test(name);
  const type = schema.format === "date" ? "date" : "text";
  const input = long
    ? make("textarea", { ...common, rows: 4, dir: "auto" })
    : make("input", { ...common, type, dir: "auto" });
  return wrap(input, () => (input.value === "" && !required ? undefined : input.value));
};

/**
 * Fields of an object.
 * @returns {{node: HTMLElement, read: () => unknown}}
 */
const group = (name, schema, root, required = true) => {
  const wanted = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties ?? {}).map(
    ([key, one]) =>
      /** @type {const} */ ([key, field(title(key), one, root, required && wanted.has(key))]),
  );
  const read = () => {
    const found = {};
    for (const [key, one] of fields) {
      const value = one.read();
      if (value !== undefined) found[key] = value;
    }
    return required || Object.keys(found).length ? found : undefined;
  };
  const node = make(
    "fieldset",
    { class: "fields" },
    name ? make("legend", {}, name) : "",
    ...fields.map(([, one]) => one.node),
  );
  return { node, read };
};

/** Fields of a list, one for each of its entries, which can be added and taken out. */
const list = (name, schema, root) => {
  const entries = [];
  const rows = make("div");
  const add = () => {
    const one = field(`${name}, ${entries.length + 1}`, schema.items ?? {}, root, false);
    const row = make(
      "div",
      { class: "entry-row" },
      one.node,
      make(
        "button",
        {
          type: "button",
          onclick: () => {
            entries.splice(entries.indexOf(one), 1);
            row.remove();
          },
        },
        "Take out",
      ),
    );
    entries.push(one);
    rows.append(row);
  };
  const node = make(
    "fieldset",
    { class: "fields" },
    make("legend", {}, name),
    rows,
    make("button", { type: "button", onclick: add }, "Add one"),
  );
  return {
    node,
    read: () => entries.map((one) => one.read()).filter((value) => value !== undefined),
  };
};

/** The form of a tool: its fields, and the arguments that they hold. */
export const formOf = (parameters) => {
  const form = group("", meant(parameters ?? { type: "object" }, parameters), parameters);
  return { node: form.node, read: () => form.read() ?? {} };
};
