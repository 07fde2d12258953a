# SPDX-License-Identifier: Apache-2.0
function answer
  echo 42
end
