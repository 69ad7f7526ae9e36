package exact_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/resource/internal/exact"
)

func TestNoDigitOfANumberIsLost(t *testing.T) {
	const text = "small: 5\nhalf: 0.5\nlarge: 1e21\nid: 1234567890123456789\nnegative: [-9007199254740993]\nunsigned: {id: 18446744073709551615}\n" +
		"even: 9007199254740994\n"
	got, err := exact.Map([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"small": 5.0, "half": 0.5, "large": 1e21, "id": json.Number("1234567890123456789"), "negative": []any{json.Number("-9007199254740993")},
		"unsigned": map[string]any{"id": json.Number("18446744073709551615")}, "even": 9007199254740994.0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	exact.Round(got)
	want["id"], want["negative"], want["unsigned"] = 1234567890123456789.0, []any{-9007199254740992.0}, map[string]any{"id": 18446744073709551615.0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNoMapIsAnError(t *testing.T) {
	for _, text := range []string{"[a]", "a", "1234567890123456789", "a: b: c"} {
		if values, err := exact.Map([]byte(text)); err == nil {
			t.Errorf("%s: it is %v", text, values)
		}
	}
	if values, err := exact.Map(nil); err != nil || values == nil {
		t.Errorf("nothing is %v, %v", values, err)
	}
}
