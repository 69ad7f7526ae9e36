package helm_test

import (
	"testing"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

func TestASchemaMayNameItselfByAnAddress(t *testing.T) {
	k := newKit(t, helm.Config{})
	for name, schema := range map[string]string{
		"its own address": `{"$id":"https://example.com/values.json","$schema":"http://json-schema.org/draft-07/schema#",
			"definitions":{"text":{"type":"string","enum":["bye"]}},"properties":{"text":{"$ref":"https://example.com/values.json#/definitions/text"}}}`,
		"relative to its address": `{"$id":"https://example.com/a/values.json","$schema":"https://json-schema.org/draft/2020-12/schema",
			"$defs":{"text":{"$id":"text.json","enum":["bye"]}},"properties":{"text":{"$ref":"/a/text.json"}}}`,
		"an anchor": `{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"text":{"$id":"http://127.0.0.1:1/text","$anchor":"it","enum":["bye"]}},
			"properties":{"text":{"$ref":"http://127.0.0.1:1/text#it"}}}`,
		"a default and examples": `{"properties":{"text":{"enum":["bye"],"default":{"$ref":"http://127.0.0.1:1/"},"examples":[{"$ref":"file:///etc/passwd"}],
			"const":"bye"},"$ref":{"type":"string"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			k := *k
			k.t = t
			chart := pageChart("1.0.0").with("values.schema.json", schema)
			k.compute(k.service(chart, values(map[string]any{"text": "bye"})))
			k.fails(k.service(chart, values(map[string]any{"text": "other"})), "/text")
		})
	}
	for _, schema := range []string{
		`{"$id":"https://example.com/values.json","properties":{"text":{"$ref":"text.json"}}}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$dynamicRef":"http://127.0.0.1:1/#it"}`,
	} {
		k.fails(k.service(pageChart("1.0.0").with("values.schema.json", schema)), "refers to", "skipSchemaValidation")
	}
}
