package command

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// savedPlans is a file of plans: what plan.WriteJSON writes, and who wrote it.
type savedPlans struct {
	Version  int             `json:"version"`
	Operator savedBy         `json:"operator"`
	Digest   string          `json:"digest"`
	Plans    json.RawMessage `json:"plans"`
	Summary  plan.Counts     `json:"summary"`
}

type savedBy struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// digest is the same for the same plans of the same operator, however the file is indented.
func (s *savedPlans) digest() (string, error) {
	var compact bytes.Buffer
	fmt.Fprintf(&compact, "%d %q %q ", s.Version, s.Operator.Name, s.Operator.Version)
	if err := json.Compact(&compact, s.Plans); err != nil {
		return "", err
	}
	sum := sha256.Sum256(compact.Bytes())
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// savePlans writes plans to a file that apply reads. What it would refuse is not written.
func (p *program) savePlans(file string, plans []*plan.Plan) error {
	for _, one := range plans {
		if one.Outcome == plan.Failed || len(one.Opaque()) > 0 {
			return fmt.Errorf("%s is not written: the plan of %s does not say everything that would be done, so that it "+
				"could not be applied", file, one.Object)
		}
	}
	var form bytes.Buffer
	if err := plan.WriteJSON(&form, plans); err != nil {
		return fmt.Errorf("save the plan: %w", err)
	}
	var saved savedPlans
	if err := json.Unmarshal(form.Bytes(), &saved); err != nil {
		return fmt.Errorf("save the plan: %w", err)
	}
	saved.Operator = savedBy{p.config.Name, p.config.Version}
	var err error
	if saved.Digest, err = saved.digest(); err != nil {
		return fmt.Errorf("save the plan: %w", err)
	}
	form.Reset()
	encoder := json.NewEncoder(&form)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(saved); err != nil {
		return fmt.Errorf("save the plan: %w", err)
	}
	if err := writeWhole(file, form.Bytes()); err != nil {
		return fmt.Errorf("save the plan: %w", err)
	}
	return nil
}

// writeWhole writes a file that its owner alone can read, and that is either as it was or complete: beside it, and then renamed. It
// does not write through a link, to what somebody else may have chosen, nor over what is no file.
func writeWhole(name string, data []byte) error {
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is %s, and not a file: give the name of a file, or of none", name, kindOfFile(info.Mode()))
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

func kindOfFile(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode.IsDir():
		return "a directory"
	}
	return "a device or the like"
}

// readPlans reads a file that savePlans wrote. The version of the operator that wrote it is told, not checked: whether
// this one would do the same is found out by planning anew.
func (p *program) readPlans(file string) ([]*plan.Plan, savedBy, error) {
	fault := func(err error) ([]*plan.Plan, savedBy, error) {
		return nil, savedBy{}, fmt.Errorf("%s: %w", file, err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, savedBy{}, err
	}
	plans, err := plan.ReadJSON(bytes.NewReader(data))
	if err != nil {
		return fault(err)
	}
	var saved savedPlans
	if err := json.Unmarshal(data, &saved); err != nil {
		return fault(err)
	}
	digest, err := saved.digest()
	if err != nil {
		return fault(err)
	}
	switch {
	case saved.Digest == "":
		return fault(errors.New(`it was not saved by "plan --out"`))
	case saved.Digest != digest:
		return fault(errors.New("it has been changed since it was saved: plan anew"))
	case saved.Operator.Name != p.config.Name:
		return fault(fmt.Errorf("it is a plan of the operator %q, and this is %q", saved.Operator.Name, p.config.Name))
	}
	return plans, saved.Operator, nil
}
