package promql

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../docs/oncall", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func parses(t *testing.T, what, query string) {
	t.Helper()
	if _, err := parser.NewParser(parser.Options{}).ParseExpr(query); err != nil {
		t.Errorf("%s: %v in: %s", what, err, query)
	}
}

func TestTheQueriesOfAlertsParse(t *testing.T) {
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(read(t, "alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) < 5 {
		t.Fatalf("there are few rules: %v", file)
	}
	for _, r := range file.Groups[0].Rules {
		parses(t, r.Alert, r.Expr)
	}
}

func TestTheQueriesOfTheDashboardParse(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read(t, "dashboard.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	queries := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries++
			parses(t, panel.Title, strings.ReplaceAll(target.Expr, "$job", "quickstart"))
		}
	}
	if queries < 20 {
		t.Errorf("there are %d queries only", queries)
	}
}
