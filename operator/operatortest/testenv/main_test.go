package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"testenv": main})
}

func TestScripts(t *testing.T) {
	binary, err := operatortest.Binary(t.Context(), operatortest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv(operatortest.BinaryVariable, binary)
			env.Setenv(operatortest.CacheVariable, env.WorkDir+"/cache")
			env.Setenv(operatortest.KubeconfigVariable, "")
			return nil
		},
	})
}
